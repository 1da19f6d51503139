//! Sharded runs, merging, and files derived from journals.

use crate::scene::{Scene, TABLES, TIMING};
use std::collections::BTreeMap;
use std::fs;

fn scene() -> Scene {
    Scene::with(&format!(
        "device: mock\nrecipes: [baseline, int8wo]\nimplementations: [eager, fused]\n{TIMING}
models:
  - {{shapes: [{{name: pow2, min_power: 5, max_power: 9}}]}}
  - {{model: ln_linear_gelu, shapes: [{{name: custom, shapes: [[8, 64, 64], [16, 64, 64]]}}]}}\n"
    ))
}

fn times(scene: &Scene, dir: &str) -> BTreeMap<String, f64> {
    let records = scene.journal(dir).records;
    records.iter().map(|record| (record.case.id.to_string(), record.time.time_ns.unwrap().median)).collect()
}

#[test]
fn merged_shards_equal_an_unsharded_run() {
    let scene = scene();
    scene.run("run c.yml --out whole --profile").expect_code(0);
    for part in 1..=3 {
        scene.run(&format!("run c.yml --out p{part} --shard {part}/3 --profile")).expect_code(0);
    }
    let merged = scene.run("merge p3 p1 p2 --out all");
    assert!(merged.expect_code(0).stderr.contains("28 cases of 3 parts"), "{merged:?}");
    assert_eq!(times(&scene, "all"), times(&scene, "whole"));
    let rows = |dir: &str| fs::read_to_string(scene.path(dir).join("results.csv")).unwrap();
    assert!(rows("all") == rows("whole"), "the rows differ, or their order");
    let (all, whole) = (scene.journal("all"), scene.journal("whole"));
    assert!(all.records.iter().all(|record| record.time.windows.len() == 10), "series are merged too");
    for record in &all.records {
        let trace = record.profile.trace.as_ref().unwrap();
        assert!(scene.path("all").join(trace).is_file(), "{trace}");
    }
    assert_eq!(all.header.plan_cases, whole.header.plan_cases);
    assert!(all.header.config["overrides"].get("shard").is_none());
    assert_eq!(all.summary.unwrap().suite, whole.summary.unwrap().suite);
    assert_eq!(scene.derived_files("all").len(), 1 + TABLES.len());
    scene.run("compare whole all").expect_code(0);
    scene.run("report all").expect_code(0);
    let index = fs::read_to_string(scene.path("all/index.html")).unwrap();
    for name in ["journal.jsonl", "results.csv", "inference/results_", "traces/", "report.html"] {
        assert!(index.contains(&format!("<a href=\"{name}")), "{name}: {index}");
    }
}

#[test]
fn missing_shards_are_listed() {
    let scene = scene();
    for part in [1, 3] {
        scene.run(&format!("run c.yml --out p{part} --shard {part}/3")).expect_code(0);
    }
    // Simulates a kill after the second record.
    let journal = scene.path("p3/journal.jsonl");
    let cut: String = fs::read_to_string(&journal).unwrap().lines().take(3).map(|line| format!("{line}\n")).collect();
    fs::write(&journal, cut).unwrap();
    let merged = scene.run("merge p1 p3 --out all");
    let output = &merged.expect_code(5).stderr;
    assert!(output.contains("shard 2/3 is missing\n"), "{output}");
    assert!(output.contains("shard 3/3 has 2 of ") && output.contains("calorimeter run --resume p3\n"), "{output}");
    assert_eq!(scene.journal("all").records.len(), scene.journal("p1").records.len() + 2);
    assert!(scene.journal("all").summary.unwrap().interrupted);
    // Completed by a resume.
    scene.run("run --resume p3").expect_code(0);
    scene.run("run c.yml --out p2 --shard 2/3").expect_code(0);
    scene.run("merge p1 p2 p3 --out whole").expect_code(0);
    // Merged runs cannot be resumed.
    scene.run("run --resume whole").expect_code(2);
}

#[test]
fn incompatible_shards_are_not_merged() {
    let scene = scene();
    scene.run("run c.yml --out p1 --shard 1/2").expect_code(0);
    scene.run("run c.yml --out p1b --shard 1/2").expect_code(0);
    scene.run("run c.yml --out p2 --shard 2/2").expect_code(0);
    scene.run("run c.yml --out seed --shard 2/2 --seed 7").expect_code(0);
    scene.run("run c.yml --out whole").expect_code(0);
    let journal = fs::read_to_string(scene.path("p2/journal.jsonl")).unwrap();
    let (header, rest) = journal.split_once('\n').unwrap();
    let mut header: serde_json::Value = serde_json::from_str(header).unwrap();
    header["environment"]["cpu"] = "another processor".into();
    fs::create_dir(scene.path("cpu")).unwrap();
    scene.write("cpu/journal.jsonl", format!("{header}\n{rest}"));
    for (parts, message) in [
        ("p1 p1b", "p1 and p1b are both shard 1/2"),
        ("p1 seed", "seed and p1 are shards of different runs"),
        ("p1 whole", "whole is a complete run"),
        ("p1 cpu", "the processor is "),
        ("p1 gone", "gone"),
    ] {
        let refused = scene.run(&format!("merge {parts} --out all"));
        assert!(refused.expect_code(2).stderr.contains(message), "{parts}: {refused:?}");
        assert!(!scene.path("all").exists(), "{parts}");
    }
    scene.run("merge p1 p2 --out whole").expect_code(2);
}

#[test]
fn empty_shards_merge() {
    let scene = Scene::with(&format!(
        "device: mock\nrecipes: [baseline]\nimplementations: [eager]\n{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8]]}}]}}]\n"
    ));
    scene.run("run c.yml --out p1 --shard 1/2").expect_code(0);
    scene.run("run c.yml --out p2 --shard 2/2").expect_code(0);
    scene.run("merge p1 p2 --out all").expect_code(0);
    assert_eq!(scene.journal("all").records.len(), 1);
    for wrong in ["0/2", "3/2", "2", "a/b"] {
        let refused = scene.run(&format!("run c.yml --shard {wrong}"));
        assert!(refused.expect_code(2).stderr.contains("expected e.g. 2/8"), "{refused:?}");
    }
}

#[test]
fn render_recreates_derived_files() {
    let scene = scene();
    scene.run("run c.yml --out out").expect_code(0);
    let before = scene.derived_files("out");
    TABLES.iter().for_each(|table| fs::remove_file(scene.path("out").join(table)).unwrap());
    fs::remove_dir_all(scene.path("out/inference")).unwrap();
    let rendered = scene.run("render out");
    assert!(rendered.expect_code(0).stderr.contains("wrote out/results.csv\n"), "{rendered:?}");
    // The last file is the index page, which links to all others.
    let named: Vec<&str> = rendered.stderr.lines().filter_map(|line| line.strip_prefix("wrote out/")).collect();
    let (index, others) = named.split_last().unwrap();
    assert_eq!((*index, others.len()), ("index.html", 1 + TABLES.len()));
    let index = fs::read_to_string(scene.path("out/index.html")).unwrap();
    assert!(others.iter().all(|file| index.contains(&format!("href=\"{file}\""))), "{index}");
    assert!(scene.derived_files("out") == before, "rendered files differ");
    assert!(scene.run("render gone").expect_code(2).stderr.contains("gone"));
}
