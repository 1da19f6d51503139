//! Extensions of other crates are supported like built-in ones, including in workers: `examples/own_program`, built
//! outside the tree.

use crate::external_packages;
use crate::scene::{ProgramOutput, Scene};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let (root, elsewhere) = (external_packages::root(), tempfile::tempdir().unwrap());
    let package = root.join("examples/own_program");
    external_packages::copy(&package.join("src"), &elsewhere.path().join("src"));
    // Dependencies keep their paths and versions of the workspace.
    let manifest = fs::read_to_string(package.join("Cargo.toml")).unwrap();
    let crates = root.join("crates").display().to_string();
    fs::write(elsewhere.path().join("Cargo.toml"), manifest.replace("../../crates", &crates)).unwrap();
    external_packages::copy(&root.join("Cargo.lock"), &elsewhere.path().join("Cargo.lock"));
    external_packages::build(elsewhere.path(), "own_program", &[])
});

fn run(scene: &Scene, arguments: &str) -> ProgramOutput {
    external_packages::run(&PROGRAM, scene, arguments)
}

/// Configuration of the example.
fn config() -> String {
    fs::read_to_string(external_packages::root().join("examples/own_program/config.yml")).unwrap()
}

#[test]
#[ignore = "builds packages"]
fn custom_extensions_produce_ordinary_records() {
    let scene = Scene::with(&config());
    // Parsed as JSON, because this process does not know the names.
    let records = run(&scene, "run c.yml --out out --format jsonl").expect_code(0).objects();
    assert!(records.iter().all(|record| record["status"] == "ok" && record["accuracy"].is_object()), "{records:?}");
    let ids: Vec<&str> = records.iter().map(|record| record["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "inference/perceptron/baseline/eager/cpu/f32/m128-k64-n64",
            "inference/perceptron/int8dq/eager/cpu/f32/m128-k64-n64",
            "inference/perceptron/int8wo-tensor/eager/cpu/f32/m128-k64-n64",
            "custom/negation/baseline/eager/cpu/f32/numbers4096",
            "ops/softmax/baseline/eager/cpu/f32/batch2-sequence16-dimension256",
            "ops/softmax/baseline/by_hand/cpu/f32/batch2-sequence16-dimension256",
        ]
    );
    let slowest = fs::read_to_string(scene.path("out/slowest.txt")).unwrap();
    assert!(ids.contains(&slowest.as_str()), "{slowest}");
}

#[test]
#[ignore = "builds packages"]
fn custom_names_are_listed_and_in_the_schema() {
    let config = config();
    let schema = run(&Scene::new(), "schema").expect_code(0).stdout.clone();
    for (what, name, misspelt) in [
        ("recipes", "int8wo-tensor", "int8wo-tensr"),
        ("models", "perceptron", "percepton"),
        ("operators", "negation", "negatoin"),
        ("implementations", "by_hand", "by_hnd"),
        ("shapes", "tall", "tal"),
    ] {
        let listed = run(&Scene::new(), &format!("list {what}"));
        let lines = &listed.expect_code(0).stdout;
        assert!(lines.lines().any(|line| line.trim_start().starts_with(name)), "{lines}");
        assert!(schema.contains(&format!("\"{name}\"")), "{name} is not in the schema");
        let wrong = run(&Scene::with(&config.replace(name, misspelt)), "run c.yml --dry-run");
        assert!(wrong.error().contains(&format!("{name:?}")), "{wrong:?}");
    }
}
