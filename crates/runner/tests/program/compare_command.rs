//! `calorimeter compare`: findings, refusals and exit codes.

use crate::scene::{ProgramOutput, Scene};
use calorimeter_case::TuningLevel;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Minimum number of windows, with a scripted clock.
const WINDOWS: &str =
    "timing: {min_time: 1ms, max_time: 60s, warm_up: 0s, min_windows: 30, max_windows: 30, window: 20us}";

/// Two recipes at `sizes` sizes, with mock rules.
fn config(sizes: u32, rules: &str) -> String {
    let shapes: Vec<String> = (1..=sizes).map(|size| format!("[8, 8, {}]", 8 * size)).collect();
    format!(
        "recipes: [baseline, int8wo]\ndevice: mock\nimplementations: [eager]\n{WINDOWS}\nmock: [{rules}]
models: [{{shapes: [{{name: custom, shapes: [{}]}}]}}]\n",
        shapes.join(", ")
    )
}

/// Runs the configuration into a folder.
fn measure(scene: &Scene, folder: &str, sizes: u32, rules: &str) {
    scene.write("c.yml", config(sizes, rules));
    let ended = scene.run(&format!("run c.yml --out {folder}"));
    assert!(ended.code == Some(0) || rules.contains("fault"), "{ended:?}");
}

fn compare(scene: &Scene, arguments: &str) -> (ProgramOutput, Value) {
    let ended = scene.run(&format!("compare {arguments} --format json"));
    let json = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    (ended, json)
}

/// Cases with one of these findings.
fn cases_with<'a>(comparison: &'a Value, findings: &[&str]) -> Vec<&'a Value> {
    let cases = comparison["cases"].as_array().unwrap().iter();
    cases.filter(|case| findings.contains(&case["finding"].as_str().unwrap())).collect()
}

/// Copies a journal with a changed environment.
fn write_with_changed_environment(scene: &Scene, from: &str, to: &str, change: impl Fn(&mut Value)) {
    let journal = fs::read_to_string(scene.path(from).join("journal.jsonl")).unwrap();
    let (first, rest) = journal.split_once('\n').unwrap();
    let mut header: Value = serde_json::from_str(first).unwrap();
    change(&mut header["environment"]);
    scene.write(to, format!("{header}\n{rest}"));
}

#[test]
fn unchanged_cases_give_no_false_findings() {
    let scene = Scene::new();
    measure(&scene, "a", 250, "{noise: 0.01, seed: 1}");
    measure(&scene, "b", 250, "{noise: 0.01, seed: 2}");
    // With an extremely small margin, so that verdicts depend on the intervals only.
    let (ended, same) = compare(&scene, "a b --margin 0.0001%");
    ended.expect_code(0);
    let cases = same["cases"].as_array().unwrap();
    let alone = cases.iter().filter(|case| ["FASTER", "SLOWER"].contains(&case["alone"].as_str().unwrap()));
    let alone = alone.count();
    assert!(cases.len() == 500 && (1..=25).contains(&alone), "{alone} of {}", cases.len());
    assert_eq!(cases_with(&same, &["faster", "slower"]).len(), 0);

    let slowed = "{match: int8wo.*n1600$, nanos: 10500, noise: 0.01, seed: 3}";
    measure(&scene, "c", 250, &format!("{slowed}, {{noise: 0.01, seed: 3}}"));
    let (ended, changed) = compare(&scene, "a c");
    ended.expect_code(1);
    let slower = cases_with(&changed, &["slower", "faster", "broken"]);
    assert_eq!(slower.len(), 1, "{slower:?}");
    assert_eq!(slower[0]["id"], "inference/linear/int8wo/eager/mock/bf16/m8-k8-n1600");
    let table = scene.run("compare a c --color never");
    table.expect_code(1);
    assert!(table.stdout.contains("\nSLOWER ") && table.stdout.contains("m8-k8-n1600"), "{}", table.stdout);
    assert!(table.stdout.lines().all(|line| line.chars().count() <= 80), "{}", table.stdout);
}

#[test]
fn runs_of_different_machines_are_refused() {
    let scene = Scene::new();
    measure(&scene, "a", 2, "{noise: 0.001}");
    for (change, reason) in [
        ("cpu", "the processor is "),
        ("profile", "the profile of the build is "),
        ("name", "mock is "),
        ("identity", "the identity of mock is "),
        ("driver", "the driver of mock is "),
    ] {
        write_with_changed_environment(&scene, "a", "b.jsonl", |environment| match change {
            "cpu" | "profile" => environment[change] = "another".into(),
            of_device => environment["devices"][0][of_device] = "another".into(),
        });
        let ended = scene.run("compare a b.jsonl");
        let error = ended.error();
        assert!(error.starts_with(&format!("these runs are not comparable: {reason}")), "{error}");
        assert!(error.contains("\"another\" in b.jsonl"), "{error}");
        let forced = scene.run("compare a b.jsonl --force");
        forced.expect_code(0);
        assert!(forced.stdout.contains("not comparable, forced: "), "{}", forced.stdout);
    }
    write_with_changed_environment(&scene, "a", "b.jsonl", |environment| environment["revision"] = "1234567".into());
    let named = scene.run("compare a b.jsonl");
    named.expect_code(0);
    assert!(named.stdout.contains("calorimeter's revision is "), "{}", named.stdout);
}

#[test]
fn slower_machines_are_distinguished_from_slower_code() {
    let scene = Scene::new();
    measure(&scene, "a", 10, "{noise: 0.002, seed: 1}");
    measure(&scene, "b", 10, "{nanos: 11000, noise: 0.002, seed: 2}");
    let (ended, moved) = compare(&scene, "a b");
    ended.expect_code(0);
    assert!((moved["machine"]["mock"].as_f64().unwrap() - 1.0 / 1.1).abs() < 0.002, "{moved}");
    assert_eq!(moved["counts"], serde_json::json!({ "SAME": 20 }));
    let slowed = "{match: int8wo.*n16$, nanos: 12100, noise: 0.002}";
    measure(&scene, "c", 10, &format!("{slowed}, {{nanos: 11000, noise: 0.002, seed: 2}}"));
    let (ended, both) = compare(&scene, "a c");
    ended.expect_code(1);
    assert_eq!(both["counts"], serde_json::json!({ "SAME": 19, "SLOWER": 1 }));
    // Without control cases the cause is unknown, and the verdicts stand.
    let only = |from: &str, to: &str| {
        let journal = fs::read_to_string(scene.path(from).join("journal.jsonl")).unwrap();
        let lines = journal.lines().filter(|line| !line.contains("\"recipe\":\"baseline\""));
        scene.write(to, lines.map(|line| format!("{line}\n")).collect::<String>());
    };
    only("a", "a.jsonl");
    only("b", "b.jsonl");
    let (ended, alone) = compare(&scene, "a.jsonl b.jsonl");
    ended.expect_code(1);
    assert_eq!(cases_with(&alone, &["slower"]).len(), 10);
    let notes = alone["notes"].to_string();
    assert!(
        notes.contains("nearly all cases changed by the same factor, 0.9") && alone["machine"].is_null(),
        "{alone}"
    );
}

#[test]
fn control_scatter_limits_interval_widths() {
    let scene = Scene::new();
    // Cases are precise within each run but differ by up to 6 % between runs, as with different memory placement.
    let rules = |step: u32| {
        let rule = |size: u32| {
            let nanos = 10_000 + (size * step) % 7 * 100;
            format!("{{match: 'n{}$', nanos: {nanos}, noise: 0.0001, seed: {step}}}", 8 * size)
        };
        (1..=12).map(rule).collect::<Vec<_>>().join(", ")
    };
    measure(&scene, "a", 12, &rules(3));
    measure(&scene, "b", 12, &rules(5));
    let (ended, comparison) = compare(&scene, "a b");
    ended.expect_code(0);
    assert!(cases_with(&comparison, &["slower", "faster"]).is_empty(), "{comparison}");
    assert!(comparison["notes"].to_string().contains("no interval is narrower than that"), "{comparison}");
}

#[test]
fn repeated_runs_include_process_variation() {
    let scene = Scene::new();
    for (folder, nanos) in [("a1", 10_000), ("a2", 10_600), ("b1", 10_500), ("b2", 10_100)] {
        let rules = format!("{{match: int8wo, nanos: {nanos}, noise: 0.001, seed: {nanos}}}, {{noise: 0.001}}");
        measure(&scene, folder, 3, &rules);
    }
    // As single processes the two differ by 5 %, which each interval excludes as chance.
    let (ended, single) = compare(&scene, "a1 b1");
    ended.expect_code(1);
    assert!(single["notes"].to_string().contains("each side is a single process"), "{single}");
    let (ended, repeated) = compare(&scene, "a1,a2 b1,b2");
    ended.expect_code(0);
    assert!(!repeated["notes"].to_string().contains("single process"), "{repeated}");
    let quantized = repeated["cases"].as_array().unwrap().iter().find(|case| case["control"] == false).unwrap();
    assert_eq!(quantized["before"]["of_processes_ns"].as_array().unwrap().len(), 2);
    assert!(quantized["lo"].as_f64().unwrap() < 0.95 && quantized["hi"].as_f64().unwrap() > 1.05, "{quantized}");
}

#[test]
fn broken_cases_are_regressions_and_fixed_ones_not() {
    let scene = Scene::new();
    measure(&scene, "good", 2, "{noise: 0.001}");
    measure(&scene, "bad", 2, "{match: int8wo.*n16$, fault: error}, {noise: 0.001}");
    let broken = scene.run("compare good bad --color never");
    broken.expect_code(1);
    assert!(broken.stdout.contains("\nbroken "), "{}", broken.stdout);
    assert!(broken.stdout.contains("the mock device reports an error"), "{}", broken.stdout);
    let mended = scene.run("compare bad good");
    mended.expect_code(0);
    assert!(mended.stdout.contains("1 mended, 3 SAME"), "{}", mended.stdout);
    let same = scene.run("compare bad bad");
    same.expect_code(0);
    assert!(same.stdout.contains("3 SAME, 1 not timed"), "{}", same.stdout);
}

#[test]
fn different_stopwatches_are_not_compared() {
    let scene = Scene::new();
    measure(&scene, "a", 1, "{noise: 0.001}");
    let journal = fs::read_to_string(scene.path("a/journal.jsonl")).unwrap();
    scene.write("b.jsonl", journal.replacen("\"stopwatch\":\"mock\"", "\"stopwatch\":\"wall\"", 1));
    let (ended, comparison) = compare(&scene, "a b.jsonl");
    ended.expect_code(0);
    let unlike = cases_with(&comparison, &["unlike"]);
    assert_eq!(unlike[0]["remarks"], serde_json::json!(["measured by different stopwatches: mock, then wall"]));
    let (_, forced) = compare(&scene, "a b.jsonl --force");
    assert!(
        cases_with(&forced, &["unlike"]).is_empty() && forced.to_string().contains("different stopwatches"),
        "{forced}"
    );
}

#[test]
fn different_tuning_levels_are_not_compared() {
    let scene = Scene::new();
    measure(&scene, "a", 1, "{noise: 0.001}");
    let run = |out: &str, words: &str| scene.run(&format!("run c.yml --out {out} --format jsonl --autotune {words}"));
    let records = run("b", "quick").expect_code(0).records();
    assert!(records.iter().all(|record| record.execution.autotune_level == Some(TuningLevel::Quick)), "{records:?}");
    let (ended, comparison) = compare(&scene, "a b");
    ended.expect_code(0);
    let unlike = cases_with(&comparison, &["unlike"]);
    assert_eq!(unlike.len(), 2);
    assert_eq!(unlike[0]["remarks"], serde_json::json!(["tuned at different levels: full, then quick"]));
    let usual = run("c", "cached,full").expect_code(0).records();
    assert!(usual.iter().all(|record| record.execution.autotune_level.is_none()), "{usual:?}");
    let refused = run("d", "fresh,cached");
    assert!(refused.code == Some(2) && refused.stderr.contains("conflicting autotune options"), "{refused:?}");
}

#[test]
fn every_format_lists_slower_cases() {
    let scene = Scene::new();
    measure(&scene, "a", 2, "{noise: 0.001}");
    measure(&scene, "b", 2, "{match: int8wo.*n16$, nanos: 12000, noise: 0.001}, {noise: 0.001}");
    let id = "inference/linear/int8wo/eager/mock/bf16/m8-k8-n16";
    for (format, holds) in [
        ("table", format!("\n  {id}\n")),
        ("markdown", format!("| SLOWER | `{id}` | 0.83")),
        ("json", format!("\"id\": \"{id}\"")),
        ("junit", format!("name=\"{id}\"><failure type=\"SLOWER\" message=\"0.83")),
        ("github", format!("::error title=SLOWER::{id}: 0.83")),
    ] {
        let ended = scene.run(&format!("compare a b --format {format}"));
        ended.expect_code(1);
        assert!(ended.stdout.contains(&holds), "{format}: {}", ended.stdout);
        assert!(ended.stderr.is_empty(), "{format}: {}", ended.stderr);
    }
    let junit = scene.run("compare a b --format junit").stdout;
    assert!(junit.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"0\""), "{junit}");
    let all = scene.run("compare a b --all --color never").stdout;
    assert_eq!(all.lines().filter(|line| line.starts_with("SAME")).count(), 3, "{all}");
}

#[test]
fn saved_baselines_compare_with_the_newest_run() {
    let scene = Scene::with(&config(1, "{noise: 0.001}"));
    scene.write("c.yml", config(1, "{noise: 0.001}") + "output_dir: results\n");
    let first = scene.run("run c.yml --save-baseline main");
    first.expect_code(0);
    assert!(first.stderr.contains("baselines/main.jsonl"), "{first:?}");
    let same = scene.run("compare main");
    same.expect_code(0);
    assert!(same.stderr.contains("note: comparing with the newest run, results/"), "{same:?}");
    assert!(same.stdout.contains("2 cases: 2 SAME"), "{same:?}");
    scene.write("c.yml", config(1, "{match: int8wo, nanos: 20000, noise: 0.001}, {noise: 0.001}"));
    scene.run("run c.yml --out slow").expect_code(0);
    scene.run("compare main slow").expect_code(1);
    let ended = scene.run("compare mian slow");
    let unknown = "unknown run \"mian\": expected a path or the name of a saved baseline; saved baselines: main";
    assert_eq!(ended.error(), unknown);
    for name in ["../main", ".hidden", "a/b"] {
        let ended = scene.run(&format!("run c.yml --out no --save-baseline {name}"));
        assert!(ended.code == Some(2) && ended.stderr.contains("invalid baseline name"), "{ended:?}");
    }
    assert!(!scene.path("no").exists());
    let kept = scene.path("cache/calorimeter/baselines/main.jsonl");
    fs::set_permissions(&kept, PermissionsExt::from_mode(0o666)).unwrap();
    let ended = scene.run("compare main slow");
    assert!(ended.error().contains("\"main\""), "{ended:?}");
}

#[test]
#[cfg_attr(not(feature = "tables"), ignore = "needs the feature tables")]
fn parquet_files_need_their_journal() {
    let scene = Scene::new();
    measure(&scene, "a", 2, "{noise: 0.001}");
    measure(&scene, "b", 2, "{match: int8wo.*n16$, nanos: 12000, noise: 0.001}, {noise: 0.001}");
    let (ended, of_tables) = compare(&scene, "a/results.parquet b/results.parquet");
    ended.expect_code(1);
    let (_, of_journals) = compare(&scene, "a b");
    assert_eq!(of_tables["cases"], of_journals["cases"]);
    fs::copy(scene.path("b/results.parquet"), scene.path("alone.parquet")).unwrap();
    let ended = scene.run("compare a alone.parquet");
    assert!(ended.error().contains("alone.parquet") && ended.error().contains("journal"), "{ended:?}");
    scene.run("compare a alone.parquet --force").expect_code(1);
    scene.write("no.parquet", "nothing");
    let ended = scene.run("compare a no.parquet");
    assert!(ended.error().starts_with("no.parquet "), "{ended:?}");
}

#[test]
fn invalid_comparisons_are_refused() {
    let scene = Scene::new();
    measure(&scene, "a", 1, "{noise: 0.001}");
    let journal = fs::read_to_string(scene.path("a/journal.jsonl")).unwrap();
    scene.write("other.jsonl", journal.replace("/m8-k8-n8", "/m8-k8-n9"));
    scene.write("empty.jsonl", format!("{}\n", journal.lines().next().unwrap()));
    scene.write("no.jsonl", "{}\n");
    scene.write("profile.json", "{}");
    for (arguments, message) in [
        ("a", "no run to compare with \"a\": pass B, or measure a run in results"),
        (
            "a nowhere",
            "unknown run \"nowhere\": expected a path or the name of a saved baseline; no baseline is saved; …",
        ),
        ("a other.jsonl", "a and other.jsonl have no case in common: for example, \"inference/linear/…"),
        ("a empty.jsonl", "empty.jsonl contains no records"),
        ("a no.jsonl", "no.jsonl is not a calorimeter journal: …"),
        ("a profile.json", "cannot compare the run a with the calibration profile profile.json: …"),
        ("profile.json profile.json", "profile.json is not a profile of `calorimeter calibrate`: …"),
        ("a a --price 1,2", "--price applies to machines: pass two profiles"),
    ] {
        let ended = scene.run(&format!("compare {arguments}"));
        let error = ended.error();
        match message.strip_suffix('…') {
            Some(beginning) => assert!(error.starts_with(beginning), "{arguments}: {error}"),
            None => assert_eq!(error, message, "{arguments}"),
        }
    }
}

#[test]
fn profiles_compare_two_machines() {
    let scene = Scene::new();
    let quick = "calibrate --device mock --quick --max-time 20ms --operations matmul,memory";
    for name in ["old", "new"] {
        scene.run(&format!("{quick} --hardware {name} --out {name}")).expect_code(0);
    }
    let path = scene.path("new/profile.json");
    let mut new: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for operation in new["operation_profiles"].as_object_mut().unwrap().values_mut() {
        operation["median_latency_ms"] = (operation["median_latency_ms"].as_f64().unwrap() / 2.0).into();
    }
    fs::write(&path, new.to_string()).unwrap();
    let ended = scene.run("compare old/profile.json new/profile.json --price 1,4");
    ended.expect_code(0);
    for part in [
        "B is 2.00 times as fast",
        "A does 2.00 times as much work per price",
        "Energy efficiency is unknown",
        "matmul f32 eager",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {}", ended.stdout);
    }
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80), "{}", ended.stdout);
    let json = scene.run("compare old/profile.json new/profile.json --format json").expect_code(0).stdout.clone();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["a"], &json["b"]), (&"old".into(), &"new".into()));
    assert!((json["all"]["speed"].as_f64().unwrap() - 2.0).abs() < 1e-6, "{json}");
}
