//! Runner as a library, without worker processes.

use crate::scene::{Scene, TABLES};
use calorimeter_runner::dialects::ConfigSource;
use calorimeter_runner::run::{OutputDirs, Request, RunEvent, RunListener};
use calorimeter_runner::worker::InProcess;
use calorimeter_sinks::{Record, Status};

#[derive(Default)]
struct EventLog {
    cases: usize,
    touched: usize,
    records: Vec<Record>,
}

impl RunListener for EventLog {
    fn on_event(&mut self, event: RunEvent) {
        match event {
            RunEvent::RunStarted { cases, finished: already } => {
                assert!(already.is_empty());
                self.cases = cases;
            }
            RunEvent::Progress { case, .. } => {
                assert!(case.contains("/cpu/f32/"), "{case}");
                self.touched += 1;
            }
            RunEvent::CaseFinished(record) => self.records.push(*record),
            RunEvent::GroupFinished => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn cases_run_in_the_calling_process() {
    let scene = Scene::new();
    let text = "recipes: [baseline, int8wo]
device: cpu
dtype: f32
timing: {min_time: 0s, max_time: 1s, warm_up: 0s, min_windows: 6, max_windows: 6, window: 20us}
models: [{shapes: [{name: custom, shapes: [[4, 32, 16]]}]}]";
    let source = ConfigSource { path: "inline.yml".into(), text: text.into() };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare().unwrap();
    let place = OutputDirs { dir: scene.path("out"), output_dir: scene.path("out") };
    let mut heard = EventLog::default();
    let outcome = prepared.start(&place, &mut InProcess::default(), &mut heard).unwrap();
    assert!(!outcome.interrupted && outcome.errors.is_empty() && outcome.paths.len() == TABLES.len() + 2);
    assert!(outcome.records.iter().all(|record| record.outcome.status == Status::Ok), "{:?}", outcome.records);
    assert_eq!((heard.cases, heard.records.len()), (2, 2));
    assert!(heard.touched > 2 * 6);
    assert_eq!(scene.journal("out").records, heard.records);
    heard.records.iter_mut().for_each(|record| drop(record.take_series()));
    assert_eq!(outcome.records, heard.records);
}
