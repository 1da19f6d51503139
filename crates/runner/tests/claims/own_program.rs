//! What another crate adds to the program is one of its own, in its workers too.

use crate::scene::{Ended, Scene, TIMING};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `examples/own_program.rs`, which Cargo builds before the tests.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_calorimeter")).with_file_name("examples").join("own_program");
    assert!(program.exists(), "{} is built by `cargo test` without a filter of targets", program.display());
    program
}

fn run(scene: &Scene, arguments: &str) -> Ended {
    let mut command = Command::new(program());
    command.args(arguments.split_whitespace());
    scene.prepare(&mut command);
    Ended::of(&mut command)
}

#[test]
fn an_outside_operator_recipe_shape_and_sink_are_rows_like_ours() {
    let scene = Scene::with(&format!(
        "device: cpu\ndtype: f32\nrecipes: [baseline, int8wo-tensor]\n{TIMING}\nmodels:\n  - {{model: linear, shapes: \
         [{{name: tall, m: [8]}}]}}\n  - {{model: negation, axes: {{numbers: 4096}}}}\n"
    ));
    let records = run(&scene, "run c.yml --out out --format jsonl").ended_with(0).records();
    let ids: Vec<&str> = records.iter().map(|record| &*record.case.id).collect();
    assert_eq!(
        ids,
        [
            "inference/linear/baseline/eager/cpu/f32/m8-k64-n64",
            "inference/linear/int8wo-tensor/eager/cpu/f32/m8-k64-n64",
            "custom/negation/baseline/eager/cpu/f32/numbers4096",
        ]
    );
    assert!(records.iter().all(|record| record.is_ok() && record.accuracy.is_some()), "{records:?}");
    let slowest = fs::read_to_string(scene.path("out/slowest.txt")).unwrap();
    assert!(ids.contains(&slowest.as_str()), "{slowest}");
}

#[test]
fn outside_names_are_listed_and_suggested() {
    let scene = Scene::with("device: cpu\nrecipes: [int8wo-tensr]\nmodels: [{model: linear, shapes: [{name: tall}]}]");
    let wrong = run(&scene, "run c.yml --dry-run");
    assert!(wrong.error().contains("did you mean \"int8wo-tensor\"?"), "{wrong:?}");
    for (what, name) in [("operators", "negation"), ("recipes", "int8wo-tensor"), ("shapes", "tall")] {
        let listed = run(&scene, &format!("list {what}"));
        let lines = &listed.ended_with(0).stdout;
        assert!(lines.lines().any(|line| line.trim_start().starts_with(name)), "{lines}");
    }
}
