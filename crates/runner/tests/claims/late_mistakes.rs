//! Kernels whose outputs become wrong during timing are mismatches; they keep their time but have no speed-up.

use crate::scene::{Scene, find};
use calorimeter_runner::dialects::Source;
use calorimeter_runner::run::{Event, Listener, Place, Request};
use calorimeter_runner::worker::InProcess;
use calorimeter_sinks::Status;
use calorimeter_zoo::{
    DeviceKind, Implementation, Opening, Output, Subject, Workload, ZooError, register_implementation,
};

/// `stream_copy` with one buffer for all sets, correct for a number of launches.
struct Copying {
    from: Vec<f32>,
    to: Vec<f32>,
    right: u32,
    /// Skip 5 % of the work except in passes whose output is checked.
    cheats: bool,
}

impl Workload for Copying {
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

    fn settle(&mut self) -> Result<(), ZooError> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Output>, ZooError> {
        self.launch()?;
        if self.cheats {
            self.to.copy_from_slice(&self.from);
        }
        Ok(vec![self.left()])
    }

    fn kept(&mut self, _: u32) -> Result<Option<Vec<Output>>, ZooError> {
        Ok(self.cheats.then(|| vec![self.left()]))
    }

    fn weight_bytes(&self) -> u64 {
        0
    }
}

impl Copying {
    fn left(&self) -> Output {
        Output { rows: 1, cols: self.to.len(), values: self.to.clone() }
    }
}

fn copying(opening: Opening<'_>, right: u32, cheats: bool) -> Result<Box<dyn Workload>, ZooError> {
    let (_, inputs) = opening.operator()?;
    let from = inputs[0].values.to_vec();
    Ok(Box::new(Copying { to: vec![f32::NAN; from.len()], from, right, cheats }))
}

/// More launches than the gate makes, and fewer than the timing makes.
const BEFORE: u32 = 2000;

struct Silent;

impl Listener for Silent {
    fn hear(&mut self, _: Event) {}
}

#[test]
fn a_kernel_that_is_wrong_after_some_launches_keeps_its_time_and_has_no_speedup() {
    let subject: Subject = "stream_copy".parse().unwrap();
    let steady = Implementation::register("steady", "is right to the end").unwrap();
    let spoilt = Implementation::register("spoilt", "is right at first").unwrap();
    let hasty = Implementation::register("hasty", "does all of the work only if its output is checked").unwrap();
    for (implementation, right, cheats) in [(steady, u32::MAX, false), (spoilt, BEFORE, false), (hasty, u32::MAX, true)]
    {
        let open = move |opening: Opening<'_>| copying(opening, right, cheats);
        register_implementation(subject, implementation, DeviceKind::Cpu, open).unwrap();
    }
    let scene = Scene::new();
    let text = "device: cpu
dtype: f32
regimes: [device-hot]
timing: {min_time: 100ms, max_time: 5s, warm_up: 10ms, min_windows: 10, max_windows: 10, window: 1ms}
models: [{model: stream_copy, axes: {elements: 1000}, implementations: [eager, steady, spoilt, hasty]}]";
    let source = Source { path: "inline.yml".into(), text: text.into() };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare().unwrap();
    let place = Place { dir: scene.path("out"), output_dir: scene.path("out") };
    let outcome = prepared.start(&place, &mut InProcess::default(), &mut Silent).unwrap();
    let right = find(&outcome.records, "/steady/");
    assert!(right.is_ok() && right.speedup.is_some(), "{right:?}");
    let wrong = find(&outcome.records, "/spoilt/");
    assert_eq!(wrong.outcome.status, Status::Mismatch, "{wrong:?}");
    let reason = wrong.outcome.reason.as_deref().unwrap();
    assert!(reason.starts_with("wrong output after the last window, of buffer set 0: 1 of 1000 "), "{reason}");
    assert!(wrong.time.time_ns.is_some() && wrong.speedup.is_none(), "{wrong:?}");
    let hasty = find(&outcome.records, "/hasty/");
    assert_eq!(hasty.outcome.status, Status::Mismatch, "{hasty:?}");
    let reason = hasty.outcome.reason.as_deref().unwrap();
    assert!(reason.starts_with("wrong output of the last pass on buffer set 0: 50 of 1000 "), "{reason}");
}
