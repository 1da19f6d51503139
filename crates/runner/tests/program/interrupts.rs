//! Ctrl-C ends a run in an orderly way.

use crate::scene::{Scene, TIMING};
use rustix::process::Signal;

fn config(sleep_ms: u32) -> String {
    format!(
        "recipes: [baseline, int8wo]
device: mock
dtype: f32
{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16], [24, 24, 24]]}}]}}]
mock: [{{match: int8wo, nanos: 5000, noise: 0.05, sleep_ms: {sleep_ms}}}, {{noise: 0.05, sleep_ms: {sleep_ms}}}]
"
    )
}

#[test]
fn interrupted_runs_resume_to_identical_files() {
    let whole = Scene::with(&config(2));
    whole.run("run c.yml --out out").expect_code(0);
    for (signal, records) in [(Signal::INT, 4), (Signal::TERM, 8)] {
        let scene = Scene::with(&config(2));
        let mut running = scene.start("run c.yml --out out");
        running.wait_for_records("out", records);
        running.signal(signal);
        let ended = running.wait();
        ended.expect_code(130);
        assert!(ended.stderr.contains("interrupted: finishing the journal"), "{ended:?}");

        let contents = scene.journal("out");
        let summary = contents.summary.unwrap();
        assert!(summary.interrupted);
        assert_eq!(summary.counts.values().sum::<u64>() as usize, contents.records.len());
        assert!(contents.records.len() >= records && contents.records.len() < 12, "{}", contents.records.len());
        let csv = String::from_utf8(scene.derived_files("out")[0].clone()).unwrap();
        assert_eq!(csv.lines().count(), 1 + contents.records.len());

        scene.run("run --resume out").expect_code(0);
        assert!(scene.derived_files("out") == whole.derived_files("out"));
        assert!(!scene.journal("out").summary.unwrap().interrupted);
    }
}
