//! On the mock device a run comes out to the digit.
//!
//! `CALORIMETER_REGENERATE=1 cargo test -p calorimeter-runner --test claims golden` writes the expected files anew.

use crate::pseudo_terminal::Terminal;
use crate::scene::{Scene, fixture};
use std::fs;
use std::process::Stdio;

#[test]
fn a_mock_run_gives_the_same_table_and_the_same_csv() {
    let scene = Scene::with(&fs::read_to_string(fixture("golden/run.yml")).unwrap());
    let ended = scene.run("run c.yml --out out --color never");
    ended.ended_with(3);
    let csv = fs::read_to_string(scene.path("out/results.csv")).unwrap();
    for (name, content) in [("golden/table.txt", &ended.stdout), ("golden/results.csv", &csv)] {
        compare(name, content);
    }
    for verdict in ["FASTER", "SLOWER", "SAME", "UNCLEAR", "not converged"] {
        assert!(ended.stdout.contains(verdict), "the run shows no {verdict}");
    }
}

#[test]
fn a_table_is_as_wide_as_its_terminal() {
    // What goes to a file is as wide as the second.
    for (columns, expected) in [(80, "table_80"), (120, "table"), (200, "table_200")] {
        let scene = Scene::with(&fs::read_to_string(fixture("golden/run.yml")).unwrap());
        let shown = on_terminal(&scene, "run c.yml --out out --color never", columns);
        compare(&format!("golden/{expected}.txt"), &shown);
        for line in shown.lines().filter(|line| !line.contains('/') || line.contains(" GB/s")) {
            assert!(line.chars().count() <= columns.into(), "{columns}: {line}");
        }
    }
}

/// What the program prints on a terminal.
fn on_terminal(scene: &Scene, arguments: &str, columns: u16) -> String {
    Terminal::of(columns).shows(scene.command(arguments).stderr(Stdio::null()))
}

/// Compares with the expected file, or writes it anew.
fn compare(name: &str, content: &str) {
    if std::env::var_os("CALORIMETER_REGENERATE").is_some() {
        fs::write(fixture(name), content).unwrap();
    }
    let expected = fs::read_to_string(fixture(name)).unwrap();
    for (number, (line, expected)) in content.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "line {} of {name}", number + 1);
    }
    assert_eq!(content.len(), expected.len(), "{name}");
}
