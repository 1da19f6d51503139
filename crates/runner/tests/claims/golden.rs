//! On the mock device a run comes out to the digit.
//!
//! `CALORIMETER_REGENERATE=1 cargo test -p calorimeter-runner --test claims golden` writes the expected files anew.

use crate::scene::{Scene, fixture};
use std::fs;

#[test]
fn a_mock_run_gives_the_same_table_and_the_same_csv() {
    let scene = Scene::with(&fs::read_to_string(fixture("golden/run.yml")).unwrap());
    let ended = scene.run("run c.yml --out out --color never");
    ended.ended_with(3);
    let csv = fs::read_to_string(scene.path("out/results.csv")).unwrap();
    for (name, content) in [("golden/table.txt", &ended.stdout), ("golden/results.csv", &csv)] {
        if std::env::var_os("CALORIMETER_REGENERATE").is_some() {
            fs::write(fixture(name), content).unwrap();
        }
        let expected = fs::read_to_string(fixture(name)).unwrap();
        for (number, (line, expected)) in content.lines().zip(expected.lines()).enumerate() {
            assert_eq!(line, expected, "line {} of {name}", number + 1);
        }
        assert_eq!(content.len(), expected.len(), "{name}");
    }
    for verdict in ["FASTER", "SLOWER", "SAME", "UNCLEAR", "not converged"] {
        assert!(ended.stdout.contains(verdict), "the run shows no {verdict}");
    }
}
