//! Kernels whose outputs become wrong during timing are mismatches; they keep their time but have no speed-up.

use crate::scene::{Scene, find_record};
use calorimeter_runner::dialects::ConfigSource;
use calorimeter_runner::run::{OutputDirs, Request, RunEvent, RunListener};
use calorimeter_runner::worker::InProcess;
use calorimeter_sinks::Status;
use calorimeter_zoo::{
    DeviceKind, Implementation, OpenRequest, Output, Subject, Workload, ZooError, register_implementation,
};

/// `stream_copy` with one buffer for all sets, correct for a number of launches.
struct CopyWorkload {
    from: Vec<f32>,
    to: Vec<f32>,
    right: u32,
    /// Skip 5 % of the work except in passes whose output is checked.
    cheats: bool,
}

impl Workload for CopyWorkload {
    fn launch(&mut self) -> Result<(), ZooError> {
        self.right = self.right.saturating_sub(1);
        self.to.copy_from_slice(&self.from);
        if self.cheats {
            let done = self.to.len() - self.to.len() / 20;
            self.to[done..].fill(0.0);
        }
        if self.right == 0 {
            self.to[self.from.len() / 2] += 1.0;
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch()?;
        if self.cheats {
            self.to.copy_from_slice(&self.from);
        }
        Ok(vec![self.left()])
    }

    fn last_outputs(&mut self, _: u32) -> Result<Option<Vec<Output>>, ZooError> {
        Ok(self.cheats.then(|| vec![self.left()]))
    }
}

impl CopyWorkload {
    fn left(&self) -> Output {
        Output { rows: 1, cols: self.to.len(), values: self.to.clone() }
    }
}

fn open_copy(opening: OpenRequest<'_>, right: u32, cheats: bool) -> Result<Box<dyn Workload>, ZooError> {
    let (_, inputs) = opening.operator()?;
    let from = inputs[0].values.to_vec();
    Ok(Box::new(CopyWorkload { to: vec![f32::NAN; from.len()], from, right, cheats }))
}

/// More launches than the gate makes, and fewer than the timing makes.
const CORRECT_LAUNCHES: u32 = 2000;

struct NullListener;

impl RunListener for NullListener {
    fn on_event(&mut self, _: RunEvent) {}
}

#[test]
fn late_errors_are_mismatches_without_speedup() {
    let subject: Subject = "stream_copy".parse().unwrap();
    let steady = Implementation::register("steady", "is right to the end").unwrap();
    let spoilt = Implementation::register("spoilt", "is right at first").unwrap();
    let hasty = Implementation::register("hasty", "does all of the work only if its output is checked").unwrap();
    for (implementation, right, cheats) in
        [(steady, u32::MAX, false), (spoilt, CORRECT_LAUNCHES, false), (hasty, u32::MAX, true)]
    {
        let open = move |opening: OpenRequest<'_>| open_copy(opening, right, cheats);
        register_implementation(subject, implementation, DeviceKind::Cpu, open).unwrap();
    }
    let scene = Scene::new();
    let text = "device: cpu
dtype: f32
regimes: [device-hot]
timing: {min_time: 100ms, max_time: 5s, warm_up: 10ms, min_windows: 10, max_windows: 10, window: 1ms}
models: [{model: stream_copy, axes: {elements: 1000}, implementations: [eager, steady, spoilt, hasty]}]";
    let source = ConfigSource { path: "inline.yml".into(), text: text.into() };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare().unwrap();
    let place = OutputDirs { dir: scene.path("out"), output_dir: scene.path("out") };
    let outcome = prepared.start(&place, &mut InProcess::default(), &mut NullListener).unwrap();
    let right = find_record(&outcome.records, "/steady/");
    assert!(right.is_ok() && right.speedup.is_some(), "{right:?}");
    let wrong = find_record(&outcome.records, "/spoilt/");
    assert_eq!(wrong.outcome.status, Status::Mismatch, "{wrong:?}");
    let reason = wrong.outcome.reason.as_deref().unwrap();
    assert!(reason.starts_with("wrong output after the last window, of buffer set 0: 1 of 1000 "), "{reason}");
    assert!(wrong.time.time_ns.is_some() && wrong.speedup.is_none(), "{wrong:?}");
    let hasty = find_record(&outcome.records, "/hasty/");
    assert_eq!(hasty.outcome.status, Status::Mismatch, "{hasty:?}");
    let reason = hasty.outcome.reason.as_deref().unwrap();
    assert!(reason.starts_with("wrong output of the last pass on buffer set 0: 50 of 1000 "), "{reason}");
}
