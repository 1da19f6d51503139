//! Progress display in the terminal of a run and in another one.

use crate::pseudo_terminal::Terminal;
use crate::scene::{ProgramOutput, Scene, TIMING, fixture};
use rustix::process::Signal;
use std::fs;

/// Slow run of four cases.
fn slow_scene() -> Scene {
    Scene::with(&format!(
        "device: mock\nrecipes: [baseline, int8wo]\nimplementations: [eager]\n{TIMING}
mock: [{{sleep_ms: 10}}]
models: [{{shapes: [{{name: custom, shapes: [[8, 64, 32], [16, 64, 32]]}}]}}]\n"
    ))
}

#[test]
fn watching_a_finished_run_prints_its_output() {
    let scene = Scene::with(&fs::read_to_string(fixture("golden/run.yml")).unwrap());
    let run = scene.run("run c.yml --out out --color never");
    let watched = scene.run("watch out --color never");
    assert_eq!(watched.expect_code(0).stdout, run.stdout);
    assert_eq!(scene.run("watch out/journal.jsonl --color never").expect_code(0).stdout, run.stdout);
    assert!(scene.run("watch nowhere").error().starts_with("no run at nowhere; "));
}

#[test]
fn watching_follows_a_run_to_its_end() {
    let scene = slow_scene();
    let mut run = scene.start("run c.yml --out out --color never");
    run.wait_for_records("out", 2);
    let watched = scene.run("watch out --color never");
    let run = run.wait();
    assert_eq!((watched.expect_code(0).stdout.as_str(), watched.stderr.as_str()), (run.stdout.as_str(), ""));
}

#[test]
fn progress_is_shown_below_the_table() {
    let scene = slow_scene();
    let mut run = scene.start("run c.yml --out out --color never");
    run.wait_for_records("out", 2);
    let shown = Terminal::with_columns(80).output_of(&mut scene.command("watch out --color never"));
    run.wait().expect_code(0);
    assert!(shown.contains("2/4 cases, 0:0"), "{shown}");
    assert!(shown.contains("4 cases: 4 ok"), "{shown}");
}

#[test]
fn status_line_fits_the_terminal() {
    let scene = slow_scene();
    for columns in [40, 100] {
        let arguments = format!("run c.yml --out out{columns} --color never");
        let shown = Terminal::with_columns(columns).output_of(&mut scene.command(&arguments));
        let lines = shown.split(['\r', '\n', '\u{1b}']).filter(|line| line.contains("/4 cases, "));
        // Removes control sequences before the line, and padding after it.
        let lines: Vec<&str> = lines.map(|line| line.trim_start_matches("[2K").trim_end()).collect();
        assert!(lines.iter().any(|line| line.contains("  measuring") || line.contains("  warming up")), "{shown:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{lines:?}");
        assert!(!shown.contains("about 0"), "{shown}");
    }
}

#[test]
fn watching_reports_an_abandoned_run() {
    let scene = slow_scene();
    let mut run = scene.start("run c.yml --out out");
    run.wait_for_records("out", 2);
    let watching = scene.start("watch out");
    run.signal(Signal::KILL);
    run.wait();
    let watched: ProgramOutput = watching.wait();
    let gone = "the run was stopped after 2 of 4 cases; continue with: calorimeter run --resume out";
    assert!(watched.error().ends_with(gone), "{watched:?}");
    assert!(watched.stdout.contains("int8wo"), "{watched:?}");
    // A resumed run is followed again.
    let run = scene.start("run --resume out");
    crate::scene::wait_until("the resume", || scene.journal("out").resumed.len() == 1);
    let watched = scene.run("watch out");
    assert!(watched.expect_code(0).stdout.contains("4 cases: 4 ok"), "{watched:?}");
    run.wait().expect_code(0);
}
