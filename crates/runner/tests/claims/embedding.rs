//! Runner as a library, without worker processes.

use crate::scene::Scene;
use calorimeter_runner::dialects::Source;
use calorimeter_runner::run::{Event, Listener, Place, Request};
use calorimeter_runner::worker::InProcess;
use calorimeter_sinks::{Record, Status};

#[derive(Default)]
struct Heard {
    cases: usize,
    touched: usize,
    records: Vec<Record>,
}

impl Listener for Heard {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Begun { cases, already } => {
                assert!(already.is_empty());
                self.cases = cases;
            }
            Event::Touched { case, .. } => {
                assert!(case.contains("/cpu/f32/"), "{case}");
                self.touched += 1;
            }
            Event::Ended(record) => self.records.push(*record),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_program_runs_cases_in_its_own_process() {
    let scene = Scene::new();
    let text = "recipes: [baseline, int8wo]
device: cpu
dtype: f32
timing: {min_time: 0s, max_time: 1s, warm_up: 0s, min_windows: 6, max_windows: 6, window: 20us}
models: [{shapes: [{name: custom, shapes: [[4, 32, 16]]}]}]";
    let source = Source { path: "inline.yml".into(), text: text.into() };
    let prepared = Request { sources: vec![source], ..Request::default() }.prepare().unwrap();
    let place = Place { dir: scene.path("out"), output_dir: scene.path("out") };
    let mut heard = Heard::default();
    let outcome = prepared.start(&place, &mut InProcess::default(), &mut heard).unwrap();
    assert!(!outcome.interrupted && outcome.errors.is_empty() && outcome.paths.len() == 4);
    assert!(outcome.records.iter().all(|record| record.outcome.status == Status::Ok), "{:?}", outcome.records);
    assert_eq!((heard.cases, heard.records.len()), (2, 2));
    assert!(heard.touched > 2 * 6);
    assert_eq!(scene.journal("out").records, heard.records);
    heard.records.iter_mut().for_each(|record| drop(record.take_series()));
    assert_eq!(outcome.records, heard.records);
}
