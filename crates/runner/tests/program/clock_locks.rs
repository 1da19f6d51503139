//! Locked clocks are unlocked at the end of a run, however it ends.

use crate::scene::{ProgramOutput, Scene, TIMING, find_record};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

fn scene(sleep_ms: u32) -> Scene {
    Scene::with(&format!(
        "recipes: [baseline, int8wo]
device: mock
dtype: f32
{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16], [24, 24, 24]]}}]}}]
mock: [{{sleep_ms: {sleep_ms}}}]
"
    ))
}

/// Log of the mock device's clock.
fn clock_log(scene: &Scene) -> Vec<String> {
    let text = fs::read_to_string(scene.path("cache/calorimeter/mock/clock.log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn lock_note(scene: &Scene) -> String {
    fs::read_to_string(scene.path("cache/calorimeter/clock-locks/mock.json")).unwrap()
}

/// Run with a locked clock that receives these signals after its first record.
fn run_with_signals(scene: &Scene, signals: &[Signal]) -> ProgramOutput {
    let mut running = scene.start("run c.yml --out out --lock-clocks");
    running.wait_for_records("out", 1);
    assert_eq!(clock_log(scene), ["lock base"]);
    signals.iter().for_each(|&signal| running.signal(signal));
    running.wait()
}

#[test]
fn finished_and_failed_runs_unlock_the_clock() {
    let scene = scene(0);
    scene.run("run c.yml --out out --lock-clocks=1200").expect_code(0);
    assert_eq!(clock_log(&scene), ["lock 1200 MHz", "unlock"]);
    assert!(lock_note(&scene).is_empty());
    let policy = |out: &str| scene.journal(out).header.environment["devices"][0]["clock_policy"].clone();
    assert_eq!(policy("out"), "clock locked at 1200 MHz");
    // The journal exists, which is an error after the clock was locked.
    scene.run("run c.yml --out out --lock-clocks").error();
    assert_eq!(clock_log(&scene)[2..], ["lock base", "unlock"]);
    scene.run("run c.yml --out free").expect_code(0);
    assert!(policy("free").is_null() && clock_log(&scene).len() == 4);
}

#[test]
fn interrupted_runs_unlock_the_clock() {
    for signals in [&[Signal::INT][..], &[Signal::TERM], &[Signal::INT, Signal::INT]] {
        let scene = scene(3);
        run_with_signals(&scene, signals).expect_code(130);
        assert_eq!(clock_log(&scene), ["lock base", "unlock"], "{signals:?}");
        assert!(lock_note(&scene).is_empty());
    }
}

#[test]
fn next_start_unlocks_after_a_killed_run() {
    let scene = scene(3);
    assert_eq!(run_with_signals(&scene, &[Signal::KILL]).code, None);
    assert_eq!(clock_log(&scene), ["lock base"]);
    assert!(lock_note(&scene).contains("\"clock\":\"base\""), "{}", lock_note(&scene));
    let next = scene.run("list recipes");
    assert!(next.expect_code(0).stderr.starts_with("note: released mock: a killed run of"), "{next:?}");
    assert_eq!(clock_log(&scene), ["lock base", "unlock"]);
    assert!(scene.run("list recipes").stderr.is_empty());
}

#[test]
fn locks_of_running_processes_are_kept() {
    let scene = scene(3);
    let mut running = scene.start("run c.yml --out out --lock-clocks");
    running.wait_for_records("out", 1);
    let other = scene.run("list recipes");
    assert!(other.stderr.is_empty() && clock_log(&scene) == ["lock base"], "{other:?}");
    let second = scene.run("run c.yml --out second --lock-clocks");
    assert!(second.error().starts_with("--lock-clocks: mock: "), "{second:?}");
    assert!(!second.error().contains("clock.log"), "another run holds the lock: {second:?}");
    running.signal(Signal::INT);
    running.wait().expect_code(130);
    assert_eq!(clock_log(&scene), ["lock base", "unlock"]);
}

#[test]
fn missing_permission_refuses_the_run() {
    let refused = scene(0);
    fs::create_dir_all(refused.path("cache/calorimeter/mock/clock.log")).unwrap();
    let ended = refused.run("run c.yml --out out --lock-clocks");
    assert!(ended.error().starts_with("--lock-clocks: mock: ") && ended.error().contains("clock.log"), "{ended:?}");
    assert!(lock_note(&refused).is_empty() && !refused.path("out").exists());
    let on_the_cpu = refused.run("run c.yml --out out --device cpu --lock-clocks");
    assert!(on_the_cpu.error().starts_with("--lock-clocks: cpu: "), "{on_the_cpu:?}");
    let wrong = refused.run("run c.yml --lock-clocks=fast");
    assert!(wrong.code == Some(2) && wrong.stderr.contains("invalid clock"), "{wrong:?}");
}

#[test]
fn noise_floor_of_another_clock_is_ignored() {
    let scene = scene(0);
    scene.run("noise --device mock --comparisons 5 --lock-clocks=1200").expect_code(0);
    let kept = scene.path("cache/calorimeter/noise/mock.json");
    let mut noise: Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
    assert_eq!(noise["policy"], "clock locked at 1200 MHz");
    noise["middle_floor"] = 0.05.into();
    fs::write(&kept, noise.to_string()).unwrap();
    for (arguments, margin, notes) in [("--lock-clocks=1200", 0.1, 0), ("--lock-clocks", 0.02, 1), ("", 0.02, 1)] {
        let out = format!("out{}", arguments.len());
        let ended = scene.run(&format!("run c.yml --out {out} --format jsonl {arguments}"));
        let records = ended.expect_code(0).records();
        assert_eq!(find_record(&records, "int8wo/eager/mock/f32/m8-").speedup.as_ref().unwrap().margin, Some(margin));
        let notes_found = ended.stderr.matches("note: mock: the saved noise floor is ignored: clock").count();
        assert_eq!(notes_found, notes, "{ended:?}");
    }
}
