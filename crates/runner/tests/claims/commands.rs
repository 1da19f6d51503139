//! Every command answers, and every exit code means one thing.

use crate::scene::{Scene, TABLES, TIMING};

#[test]
fn every_question_is_answered_on_standard_output() {
    let scene = Scene::new();
    for (arguments, contains) in [
        ("--help", "Usage: calorimeter <COMMAND>"),
        ("--version", "calorimeter "),
        ("run --help", "Exit codes:"),
        ("run -h", "--dry-run"),
        ("accuracy --help", "--implementations"),
        ("ci --help", "--output"),
        ("compare --help", "Exit codes:"),
        ("report --help", "Exit codes:"),
        ("calibrate --help", "--fusion-patterns"),
        ("list", "transformer_block"),
        ("list recipes", "int8wo"),
        ("list shapes", "small_sweep"),
        ("list implementations", "native"),
        ("list devices", "cpu"),
        ("doctor", "Devices, the best first:"),
        ("schema", "\"recipes\": {"),
        ("man", ".TH calorimeter"),
        ("completions bash", "complete -F"),
        ("completions zsh", "#compdef calorimeter"),
        ("completions fish", "complete -c calorimeter"),
    ] {
        let ended = scene.run(arguments);
        ended.ended_with(0);
        assert!(ended.stdout.contains(contains), "{arguments}: {ended:?}");
        assert!(ended.stderr.is_empty(), "{arguments}: {ended:?}");
    }
    assert!(std::fs::read_dir(scene.path(".")).unwrap().next().is_none(), "a question leaves nothing behind");
}

#[test]
fn an_exit_code_is_the_worst_of_what_happened() {
    let noisy = "{match: int8wo, noise: 0.9}";
    for (rules, arguments, code) in [
        ("", "", 0),
        (noisy, "", 0),
        (noisy, "--strict", 4),
        ("{match: int8wo, fault: error}", "", 5),
        ("{match: int8wo, fault: abort}", "--strict", 5),
        ("{match: int8wo, fault: hang}", "--timeout 1s", 5),
        ("{match: int8wo, fault: mismatch}", "", 3),
        ("{match: int8wo.*m8-, fault: mismatch}, {match: int8wo, fault: abort}", "--strict", 3),
    ] {
        let scene = Scene::with(&format!(
            "recipes: [baseline, int8wo, marlin]\ndevice: mock\nimplementations: [eager]\n{TIMING}\nmock: [{rules}]
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]\n"
        ));
        scene.run(&format!("run c.yml --out out {arguments}")).ended_with(code);
        // The files are there whatever the code is.
        assert_eq!(scene.derived("out").len(), 1 + TABLES.len());
    }
}

#[test]
fn a_reader_that_goes_away_does_not_stop_a_run() {
    let scene =
        Scene::with(&format!("recipes: [baseline]\ndevice: mock\n{TIMING}\nmodels: [{{shapes: [{{name: pow2}}]}}]\n"));
    let mut running = scene.start("run c.yml --out out");
    drop(running.child.stdout.take());
    running.end().ended_with(0);
    assert!(scene.journal("out").summary.is_some());
}
