//! Formats that other programs read.

use crate::scene::{Scene, TIMING};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;

fn scene() -> Scene {
    Scene::with(&format!(
        "recipes: [baseline, int8wo, marlin]
device: mock
{TIMING}
models:
  - {{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}
  - {{name: block, model: transformer_block, shapes: [{{name: custom, shapes: [[2, 8, 8]]}}]}}
mock: [{{match: 'int8wo/eager.*m16', fault: abort}}, {{match: 'int8wo/fused', nanos: 4000}}]
"
    ))
}

#[test]
fn stdout_records_match_the_journal() {
    let scene = scene();
    let ended = scene.run("run c.yml --out out --format jsonl");
    ended.expect_code(5);
    let journal = fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    let records: String = journal
        .lines()
        .filter_map(|line| Some(line.strip_prefix("{\"record\":")?.strip_suffix('}')?.to_owned() + "\n"))
        .collect();
    assert_eq!(records.lines().count(), 18);
    assert!(ended.stdout == records, "{}", ended.stdout);
}

#[test]
fn plan_matches_ids_and_facts_of_records() {
    let scene = scene();
    let plan = scene.run("run c.yml --dry-run --format jsonl");
    let records = scene.run("run c.yml --out out --format jsonl").objects();
    let records: HashMap<&str, &Value> = records.iter().map(|r| (r["id"].as_str().unwrap(), r)).collect();
    let plan = plan.expect_code(0).objects();
    assert_eq!(plan.len(), records.len());
    for case in &plan {
        let record = records[case["id"].as_str().unwrap()];
        for (key, value) in case.as_object().unwrap() {
            assert_eq!(&record[key], value, "{key} of {case}");
        }
        for key in ["mode", "workload", "recipe", "implementation", "device", "dtype", "regime"] {
            assert!(case[key].is_string(), "{key} of {case}");
        }
        assert!(case["flops"].is_u64() && case["shape"]["k"].is_u64(), "{case}");
        assert_eq!(case["status"] == "unsupported", record["status"] == "unsupported");
        assert_eq!(case["bytes"].is_u64(), case["recipe"] != "marlin", "what a recipe refuses has no size: {case}");
    }
    assert!(!scene.path("cache").exists());
}

#[test]
fn dashboard_lists_both_arms_per_quantized_shape() {
    let scene = scene();
    scene.run("ci --config c.yml --output x.json --out out").expect_code(5);
    let entries: Vec<Value> = serde_json::from_slice(&fs::read(scene.path("x.json")).unwrap()).unwrap();
    let facts: Vec<String> = entries
        .iter()
        .filter(|entry| entry["benchmark"]["dtype"] == "int8wo")
        .map(|entry| {
            let (metric, model) = (&entry["metric"], &entry["model"]);
            assert!(entry["benchmark"]["extra_info"]["device"] == "mock" && metric["target_value"] == 0.0);
            let value = &metric["benchmark_values"];
            format!("{} {} {value}", model["name"].as_str().unwrap(), metric["name"].as_str().unwrap())
        })
        .collect();
    let expected: Vec<String> = ["8-8-8", "16-16-16", "2-8-8"]
        .iter()
        .flat_map(|shape| {
            [
                "Fwd Speedup (x) [2.5]",
                "Bfloat16 Fwd Time (ms) [0.01]",
                "Quantized Fwd Time (ms) [0.004]",
                "Eager Fwd Speedup (x) [1.0]",
                "Bfloat16 Eager Fwd Time (ms) [0.01]",
                "Quantized Eager Fwd Time (ms) [0.01]",
            ]
            .map(|fact| format!("int8wo-{shape} {fact}"))
        })
        // The eager arm fails at this shape.
        .filter(|fact| !(fact.contains("-16-16-16") && fact.contains("Eager")))
        .collect();
    assert_eq!(facts, expected);
}

#[test]
fn empty_dashboards_are_errors_unless_allowed() {
    let model = "models: [{shapes: [{name: custom, shapes: [[8, 8, 8]]}]}]";
    let scene = Scene::with(&format!("recipes: [marlin]\ndevice: mock\n{TIMING}\n{model}\n"));
    let ended = scene.run("ci --config c.yml --output x.json");
    assert!(ended.code == Some(5) && ended.stderr.contains("error: x.json is empty"), "{ended:?}");
    assert_eq!(fs::read_to_string(scene.path("x.json")).unwrap(), "[]");
    scene.run("ci --config c.yml --output x.json --allow-empty").expect_code(0);
    // `ci` accepts the options of `run`.
    assert!(scene.run("ci --config c.yml --dry-run --format jsonl").expect_code(0).objects().len() == 4);
}

#[test]
fn unnamed_cases_have_baselines_in_torchao_csv() {
    let scene = scene();
    scene.run("run c.yml --out out").expect_code(5);
    let torchao = scene.derived_files("out").pop().unwrap();
    let torchao = String::from_utf8(torchao).unwrap();
    let row = torchao.lines().find(|line| line.starts_with("benchmark_int8wo_linear_m8_k8_n8_compile,")).unwrap();
    assert!(row.contains(",0.01,0.01,0.01,0.004,1.0,2.5,2.5,"), "{row}");
}

#[test]
fn tracking_services_receive_every_case() {
    let scene = Scene::with(&format!(
        "device: mock\nrecipes: [baseline, int8wo]\nimplementations: [eager]\n{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]\n"
    ));
    let ended = scene.run(
        "ci --config c.yml --output x.json --out out --shapes 8x8x8 --github-action-benchmark g.json --bencher b.json \
         --openmetrics m.txt",
    );
    ended.expect_code(0);
    let read = |file: &str| fs::read_to_string(scene.path(file)).unwrap();
    let json = |file: &str| serde_json::from_str::<serde_json::Value>(&read(file)).unwrap();
    for record in scene.journal("out").records {
        let (id, time) = (record.case.id.to_string(), record.time.time_ns.unwrap().median);
        assert_eq!(json("b.json")[&id]["latency"]["value"], time);
        assert!(json("g.json").as_array().unwrap().iter().any(|entry| entry["name"] == id && entry["value"] == time));
        assert!(read("m.txt").contains(&format!("calorimeter_time_seconds{{case=\"{id}\",")), "{id}");
    }
    for file in ["g.json", "b.json", "m.txt"] {
        assert!(ended.stderr.contains(&format!("wrote {file}\n")), "{ended:?}");
        assert!(read(file).ends_with('\n'));
    }
}
