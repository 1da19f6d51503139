//! `calorimeter calibrate`: a run whose journal yields a profile.

use crate::scene::{ProgramOutput, Scene};
use serde_json::Value;
use std::fs;

/// On the mock device all launches take equal time, without waiting.
const MOCK: &str = "calibrate --device mock --quick --max-time 20ms";

fn profile(scene: &Scene, path: &str) -> Value {
    serde_json::from_slice(&fs::read(scene.path(path)).unwrap()).unwrap()
}

fn files(scene: &Scene, folder: &str) -> Vec<String> {
    let entries = fs::read_dir(scene.path(folder)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn profiles_print_identically_when_shown_again() {
    let scene = Scene::new();
    let arguments = "--hardware toy --peak-gflops 0.001 --peak-bandwidth 1e9 --fusion-patterns all";
    let ended = scene.run(&format!("{MOCK} {arguments} --out out --output toy.json"));
    ended.expect_code(0);
    let profile = profile(&scene, "toy.json");
    assert_eq!((&profile["schema"], &profile["version"]), (&"calorimeter-calibration".into(), &1.into()));
    assert_eq!(profile["environment"]["hardware_name"], "toy");
    assert_eq!(profile["environment"]["device"]["identity"], "mock");
    let peaks = &profile["peaks"];
    assert!(peaks["f32"]["finding"].as_str().unwrap().starts_with("the stated peak is too low"), "{peaks}");
    assert!(peaks["f32"]["measured"].as_f64().unwrap() > 0.001);
    assert!(peaks["memory"]["finding"].as_str().unwrap().contains("% of the stated peak"));
    assert!(
        profile["operation_profiles"]["stream_add/native/f32/elements1/host-enqueue"]["median_latency_ms"].is_f64()
    );
    let fusion = &profile["fusion_profiles"]["linear_bias_relu/fused/f32/m512-k1024-n1024"];
    for field in ["unfused_latency_ms", "speedup_factor", "speedup_lo", "memory_reduction", "num_trials"] {
        assert!(fusion[field].is_number(), "{field}: {fusion}");
    }
    assert_eq!(fusion["fusion_pattern"], "Linear_Bias_ReLU");
    assert!(profile["not_measured"]["transfer"].is_string());

    let shown = scene.run("calibrate --show toy.json");
    let printed = ended.stdout.split_once("\ntoy  (").unwrap().1;
    assert_eq!(shown.expect_code(0).stdout.strip_prefix("toy  (").unwrap(), printed);
    for part in ["the stated peak is too low", "% of the stated peak", "Not measured"] {
        assert!(printed.contains(part), "{part} is missing in {printed}");
    }
}

#[test]
fn fusion_only_profiles_count_windows() {
    let scene = Scene::new();
    let suite = "fusion --ops linear_bias_relu --device mock --preset quick --max-time 20ms";
    scene.run(&format!("{suite} --out out --output fusion.json")).expect_code(0);
    let profile = profile(&scene, "fusion.json");
    let patterns = profile.as_object().unwrap();
    assert!(!patterns.is_empty() && patterns.values().all(|one| one["num_trials"].as_u64() > Some(5)), "{profile}");
}

#[test]
fn registry_grows_and_returns_the_newest_profile() {
    let scene = Scene::new();
    for (out, peak) in [("one", 1.0), ("two", 2.0)] {
        let arguments = format!("--operations latency --hardware toy --registry kept --out {out} --peak-gflops {peak}");
        scene.run(&format!("{MOCK} {arguments}")).expect_code(0);
    }
    let kept = files(&scene, "kept/toy");
    assert_eq!(kept.len(), 2, "{kept:?}");
    let shown = scene.run("calibrate --show toy --registry kept");
    assert!(shown.expect_code(0).stdout.starts_with("toy  ("));
    let unknown = scene.run("calibrate --show unknown --registry kept");
    assert!(unknown.error().contains("toy"), "{unknown:?}");
}

#[test]
fn cpu_profile_is_reproducible_from_the_journal() {
    // The comment shares the peaks of the CPU with other tests.
    let scene = Scene::with("# device: cpu");
    scene.run("calibrate --device cpu --quick --max-time 20ms --operations latency,dot --out out").expect_code(0);
    let first = profile(&scene, "out/profile.json");
    let operations = first["operation_profiles"].as_object().unwrap();
    let enqueue = &operations["stream_add/native/f32/elements1/host-enqueue"];
    assert_eq!(enqueue["status"], "unsupported");
    assert!(enqueue["reason"].as_str().unwrap().contains("use host-e2e"));
    assert!(operations["stream_add/native/f32/elements1/host-e2e"]["median_latency_ms"].as_f64().unwrap() > 0.0);
    assert!(operations["dot/native/f32/n1000000/device-cold"]["achieved_bandwidth_gbps"].as_f64().unwrap() > 0.0);
    assert_eq!(first["efficiency_curves"]["dot/native/f32/device-cold"].as_array().unwrap().len(), 3);

    fs::remove_file(scene.path("out/profile.json")).unwrap();
    scene.run("calibrate --resume out").expect_code(0);
    let mut again = profile(&scene, "out/profile.json");
    again["environment"]["finished"] = first["environment"]["finished"].clone();
    // Other users of the CPU are determined again.
    again["notes"] = first["notes"].clone();
    assert_eq!(again, first);
}

#[test]
fn unknown_calibration_options_list_known_ones() {
    let scene = Scene::new();
    let refused = |arguments: &str| -> ProgramOutput {
        let ended = scene.run(&format!("calibrate --device mock {arguments}"));
        ended.expect_code(2);
        assert!(ended.stdout.is_empty(), "{ended:?}");
        ended
    };
    for (arguments, message) in [
        ("--operations blas4", "unknown operation \"blas4\"; known: matmul, memory, stream"),
        ("--fusion-patterns pooling", "unknown fusion pattern \"pooling\"; known: linear, conv, attention, all"),
        ("--dtypes int8", "int8"),
        ("--peak-gflops 0", "expected a number above 0"),
        ("--peak-bandwidth fast", "expected a number above 0"),
    ] {
        let ended = refused(arguments);
        assert!(ended.stderr.contains(message), "{arguments}: {ended:?}");
    }
    assert!(refused("--operations transfer").error().contains("none of these can be measured"));
    scene.write("other.json", "{\"schema\": \"another\"}");
    assert!(refused("--show other.json").error().contains("another"));
    assert!(refused("--show nowhere.json").error().contains("nowhere.json: No such file"));
    scene.write("newer.json", "{\"schema\": \"calorimeter-calibration\", \"version\": 99}");
    assert!(refused("--show newer.json").error().contains(" 99"));
}

#[test]
fn dry_run_lists_the_calibration_plan() {
    let scene = Scene::new();
    let ended = scene.run(&format!("{MOCK} --operations stream,cache --dry-run"));
    let ids: Vec<&str> = ended.expect_code(0).stdout.lines().collect();
    assert!(ids.iter().any(|id| id.starts_with("calibration/stream_triad/baseline/native/mock/f32/")), "{ids:?}");
    assert!(ids.iter().filter(|id| id.contains("/device-hot")).count() > 5);
    assert!(files(&scene, ".").is_empty(), "a dry run leaves nothing behind");
}
