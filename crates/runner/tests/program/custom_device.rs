//! Devices of other crates are supported like built-in ones, including in workers.

use crate::scene::{ProgramOutput, Scene, TIMING};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Example `own_device`, which Cargo builds before the tests.
fn program() -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_calorimeter")).with_file_name("examples").join("own_device");
    assert!(program.exists(), "{} is built by `cargo test` without a filter of targets", program.display());
    program
}

fn run(scene: &Scene, arguments: &str) -> ProgramOutput {
    let mut command = Command::new(program());
    command.args(arguments.split_whitespace());
    scene.prepare(&mut command);
    ProgramOutput::from_command(&mut command)
}

fn addition_scene(device: &str) -> Scene {
    Scene::with(&format!(
        "device: {device}\ndtype: f32\n{TIMING}\nmodels:\n  - {{model: stream_add, axes: {{elements: 4096}}}}\n"
    ))
}

#[test]
fn cases_run_on_custom_devices() {
    // Parsed as JSON, because this process does not know the device kind.
    let records = run(&addition_scene("thread"), "run c.yml --out out --format jsonl").expect_code(0).objects();
    let [record] = &records[..] else { panic!("{records:?}") };
    assert!(
        record["id"].as_str().unwrap().ends_with("/stream_add/baseline/native/thread:0/f32/elements4096"),
        "{record}"
    );
    assert!(record["status"] == "ok" && record["accuracy"].is_object(), "{record}");
    assert_eq!(record["stopwatch"], "busy-time");
    assert_eq!(record["telemetry"]["source"], "thread", "{record}");
    assert!(record["time_ns"]["median"].as_f64().unwrap() > 0.0, "{record}");
    let elsewhere =
        run(&addition_scene("cpu"), "run c.yml --out out --device thread:1 --format jsonl").expect_code(0).objects();
    assert!(elsewhere[0]["device"] == "thread:1" && elsewhere[0]["status"] == "ok", "{elsewhere:?}");
}

#[test]
fn unsupported_custom_device_cases_are_planned() {
    let scene = addition_scene("thread");
    let planned = run(&scene, "run c.yml --dry-run --format jsonl --implementations eager,native --regimes graph");
    let reasons: Vec<String> = planned.expect_code(0).objects().iter().map(|case| case["reason"].to_string()).collect();
    assert!(reasons.iter().all(|reason| reason.contains("graph: only `native` on cuda")), "{reasons:?}");
    let planned = run(&scene, "run c.yml --dry-run --format jsonl --implementations eager,native");
    let reasons: Vec<String> = planned.expect_code(0).objects().iter().map(|case| case["reason"].to_string()).collect();
    assert!(reasons[0].contains("not thread:0") && reasons[1] == "null", "{reasons:?}");
}

#[test]
fn custom_devices_are_listed_and_suggested() {
    let scene = addition_scene("thred");
    let wrong = run(&scene, "run c.yml --dry-run");
    assert!(wrong.error().contains("\"thread\""), "{wrong:?}");
    let missing = run(&addition_scene("thread:7"), "run c.yml --out out");
    assert!(missing.error().contains("thread:0 (thread 0)"), "{missing:?}");
    let unlike = run(&addition_scene("thread:all"), "run c.yml --out out");
    let message = "the devices differ, so their times cannot be mixed: thread:0 (thread 0, std::thread)";
    assert!(unlike.error().contains(message), "{unlike:?}");
    let listed = run(&scene, "list devices");
    assert!(listed.expect_code(0).stdout.contains("thread:1"), "{listed:?}");
    let output = run(&scene, "doctor");
    assert!(output.expect_code(0).stdout.contains("clock: busy-time"), "{output:?}");
    let schema = run(&scene, "schema");
    assert!(schema.expect_code(0).stdout.contains("wgpu|thread)"), "{schema:?}");
}
