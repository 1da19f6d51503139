//! Progress display in the terminal of a run and in another one.

use crate::pseudo_terminal::Terminal;
use crate::scene::{Ended, Scene, TIMING, fixture};
use rustix::process::Signal;
use std::fs;

/// Slow run of four cases.
fn slow() -> Scene {
    Scene::with(&format!(
        "device: mock\nrecipes: [baseline, int8wo]\nimplementations: [eager]\n{TIMING}
mock: [{{sleep_ms: 10}}]
models: [{{shapes: [{{name: custom, shapes: [[8, 64, 32], [16, 64, 32]]}}]}}]\n"
    ))
}

#[test]
fn a_run_that_is_over_is_printed_as_it_was() {
    let scene = Scene::with(&fs::read_to_string(fixture("golden/run.yml")).unwrap());
    let run = scene.run("run c.yml --out out --color never");
    let watched = scene.run("watch out --color never");
    assert_eq!(watched.ended_with(0).stdout, run.stdout);
    assert_eq!(scene.run("watch out/journal.jsonl --color never").ended_with(0).stdout, run.stdout);
    assert!(scene.run("watch nowhere").error().contains("nowhere/journal.jsonl does not exist"));
}

#[test]
fn a_run_that_goes_on_is_followed_to_its_end() {
    let scene = slow();
    let mut run = scene.start("run c.yml --out out --color never");
    run.wait_for_records("out", 2);
    let watched = scene.run("watch out --color never");
    let run = run.end();
    assert_eq!((watched.ended_with(0).stdout.as_str(), watched.stderr.as_str()), (run.stdout.as_str(), ""));
}

#[test]
fn how_far_a_run_is_stands_below_its_rows() {
    let scene = slow();
    let mut run = scene.start("run c.yml --out out --color never");
    run.wait_for_records("out", 2);
    let shown = Terminal::of(80).shows_all(&mut scene.command("watch out --color never"));
    run.end().ended_with(0);
    assert!(shown.contains("2/4 cases, 0:0"), "{shown}");
    assert!(shown.contains("4 cases: 4 ok"), "{shown}");
}

#[test]
fn a_run_says_below_its_rows_what_it_is_doing_and_the_line_fits() {
    let scene = slow();
    for columns in [40, 100] {
        let arguments = format!("run c.yml --out out{columns} --color never");
        let shown = Terminal::of(columns).shows_all(&mut scene.command(&arguments));
        let lines = shown.split(['\r', '\n', '\u{1b}']).filter(|line| line.contains("/4 cases, "));
        // Removes control sequences before the line, and padding after it.
        let lines: Vec<&str> = lines.map(|line| line.trim_start_matches("[2K").trim_end()).collect();
        assert!(lines.iter().any(|line| line.contains("  measuring") || line.contains("  warming up")), "{shown:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= columns.into()), "{lines:?}");
        assert!(!shown.contains("about 0"), "{shown}");
    }
}

#[test]
fn a_run_whose_writer_is_gone_says_so_and_how_to_go_on() {
    let scene = slow();
    let mut run = scene.start("run c.yml --out out");
    run.wait_for_records("out", 2);
    let watching = scene.start("watch out");
    run.signal(Signal::KILL);
    run.end();
    let watched: Ended = watching.end();
    let gone = "the run was stopped after 2 of 4 cases; continue with: calorimeter run --resume out";
    assert!(watched.error().ends_with(gone), "{watched:?}");
    assert!(watched.stdout.contains("int8wo"), "{watched:?}");
    // A resumed run is followed again.
    let run = scene.start("run --resume out");
    crate::scene::wait_until("the resume", || scene.journal("out").resumed.len() == 1);
    let watched = scene.run("watch out");
    assert!(watched.ended_with(0).stdout.contains("4 cases: 4 ok"), "{watched:?}");
    run.end().ended_with(0);
}
