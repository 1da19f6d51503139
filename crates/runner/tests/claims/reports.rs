//! One page of runs: what `report` reads, what it writes, and what it refuses.

use crate::scene::{Scene, TIMING};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// A run in which one recipe is measured and one has no kernel.
fn measured() -> Scene {
    let scene = Scene::with(&format!(
        "recipes: [baseline, int8wo, marlin]\ndevice: mock\nimplementations: [eager]\n{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8], [16, 16, 16]]}}]}}]\n"
    ));
    scene.run("run c.yml --out out").ended_with(0);
    scene
}

/// What the page's scripts are given.
fn data(scene: &Scene, page: &str) -> Value {
    let html = fs::read_to_string(scene.path(page)).unwrap();
    let (_, data) = html.split_once("<script type=\"application/json\" id=\"data\">").unwrap();
    serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap()
}

/// A column's texts, one for each case.
fn words(data: &Value, name: &str) -> Vec<String> {
    let column = data["columns"].as_array().unwrap().iter().find(|column| column["name"] == name).unwrap();
    let at = column["at"].as_array().unwrap().iter();
    at.map(|at| column["words"][at.as_u64().unwrap() as usize].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_page_lies_in_the_folder_of_its_run_and_holds_every_case() {
    let scene = measured();
    let ended = scene.run("report out");
    ended.ended_with(0);
    assert!(ended.stderr.contains("wrote out/report.html"), "{ended:?}");
    let records = scene.journal("out").records;
    let data = data(&scene, "out/report.html");
    // In the order of the plan, whatever ended first.
    let recipes = |size: u32| {
        ["baseline", "int8wo", "marlin"]
            .map(|recipe| format!("inference/linear/{recipe}/eager/mock/bf16/m{size}-k{size}-n{size}"))
    };
    assert_eq!(words(&data, "id"), [recipes(8), recipes(16)].concat());
    assert_eq!(data["summary"]["cases"], records.len());
    let cause = &data["summary"]["causes"][0];
    assert_eq!((&cause["status"], &cause["cases"]), (&"unsupported".into(), &2.into()), "{cause}");
}

#[test]
fn every_form_of_a_run_gives_the_same_figures_and_several_stand_on_one_page() {
    let scene = measured();
    let mut forms = vec!["out", "out/journal.jsonl"];
    if cfg!(feature = "tables") {
        forms.push("out/results.parquet");
    }
    // A journal has its cases in the order in which they ended, tables in that of the plan.
    let times = |form: &&str| {
        scene.run(&format!("report {form} --output page.html")).ended_with(0);
        let data = data(&scene, "page.html");
        let column = data["columns"].as_array().unwrap().iter().find(|column| column["name"] == "time_ns").unwrap();
        let numbers = column["numbers"].as_array().unwrap().iter().map(Value::as_f64);
        words(&data, "id").into_iter().zip(numbers).collect::<BTreeMap<_, _>>()
    };
    let pages: Vec<BTreeMap<String, Option<f64>>> = forms.iter().map(times).collect();
    assert_eq!(pages[0].values().flatten().count(), 4, "{pages:?}");
    assert!(pages.iter().all(|page| *page == pages[0]), "{pages:?}");

    scene.run("run c.yml --out other").ended_with(0);
    scene.run("report out other --output both.html").ended_with(0);
    let runs = words(&data(&scene, "both.html"), "run");
    assert_eq!(runs, [["out"; 6], ["other"; 6]].concat());
}

#[test]
fn a_page_in_a_folder_that_is_new_leads_to_the_traces_of_the_run() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: mock\nimplementations: [eager]\nenable_profiler: true\n{TIMING}
models: [{{shapes: [{{name: custom, shapes: [[8, 8, 8]]}}]}}]\n"
    ));
    scene.run("run c.yml --out out").ended_with(0);
    scene.run("report out --output pages/new/page.html").ended_with(0);
    let links = words(&data(&scene, "pages/new/page.html"), "trace_link");
    assert_eq!(links.len(), 1);
    assert!(scene.path("pages/new").join(&links[0]).is_file(), "{links:?}");
}

#[test]
fn the_summary_in_markdown_goes_to_standard_output_and_no_page_is_written() {
    let scene = measured();
    let ended = scene.run("report out --markdown");
    ended.ended_with(0);
    assert!(ended.stdout.starts_with("### `out`\n\n6 cases: **4 ok, 2 unsupported**\n"), "{ended:?}");
    assert!(ended.stdout.contains("\n| `int8wo` | eager | mock, "), "{ended:?}");
    assert!(!scene.path("out/report.html").exists());
}

#[test]
fn what_cannot_be_reported_is_refused_with_the_reason() {
    let scene = measured();
    let journal = fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    fs::create_dir(scene.path("begun")).unwrap();
    scene.write("begun/journal.jsonl", format!("{}\n", journal.lines().next().unwrap()));
    scene.write("broken.jsonl", "{\"record\": 1}\n");
    for (runs, because) in [
        ("begun", "begun has no records yet"),
        ("gone", "gone"),
        ("broken.jsonl", "broken.jsonl"),
        ("out begun", "begun has no records yet"),
        ("out --output begun", "cannot write begun"),
    ] {
        let ended = scene.run(&format!("report {runs}"));
        assert!(ended.error().contains(because), "{runs}: {ended:?}");
    }
    assert!(!scene.path("out/report.html").exists(), "a refusal leaves nothing behind");
}
