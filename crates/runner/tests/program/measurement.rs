//! Additional measurements next to times, and commands that test the measurement.

use crate::scene::{Scene, find_record};
use calorimeter_case::WarningCode;
use calorimeter_sinks::memory_page::PeakBound;
use calorimeter_sinks::{Record, Status};
use serde_json::Value;
use std::fs;

const SHORT: &str = "timing: {min_time: 0s, max_time: 1s, warm_up: 1us, max_warm_up: 1us, min_windows: 6, max_windows: 30, window: 20us}";

fn cpu_scene(more: &str) -> Scene {
    Scene::with(&format!(
        "recipes: [baseline, int8wo]\ndevice: cpu\ndtype: f32\n{more}\n{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[8, 64, 64]]}}]}}]\n"
    ))
}

#[test]
fn regimes_have_separate_cases_or_reasons() {
    let scene = cpu_scene("regimes: [device-cold, device-hot, graph, host-e2e, host-enqueue]");
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(0).records();
    assert_eq!(records.len(), 10);
    let of = |regime: &str| {
        let mut of = records.iter().filter(|record| record.case.regime.to_string() == regime);
        (of.next().unwrap(), of.next().unwrap())
    };
    let (cold, quantized) = of("device-cold");
    assert!(cold.case.id.ends_with("m8-k64-n64"), "{}", cold.case.id);
    let rotation = cold.execution.rotation.unwrap();
    assert!(rotation.sets >= 2 && rotation.cache_bytes.unwrap() > 0, "{rotation:?}");
    assert_eq!(quantized.speedup.as_ref().unwrap().vs, cold.case.id);
    let (hot, _) = of("device-hot");
    assert!(hot.case.id.ends_with("/device-hot") && hot.execution.rotation.is_none());
    // The waiting time of a caller uses the same operands as the device time.
    assert_eq!(of("host-e2e").0.execution.rotation, cold.execution.rotation);
    for (regime, clock) in [("device-cold", "wall"), ("device-hot", "wall"), ("host-e2e", "wall-e2e")] {
        let (baseline, _) = of(regime);
        assert_eq!(
            (baseline.outcome.status, baseline.execution.stopwatch.as_deref()),
            (Status::Ok, Some(clock)),
            "{baseline:?}"
        );
        assert!(baseline.time.scatter.is_some() && baseline.preparation.empty_window_ns.is_some());
        assert_eq!(baseline.rates.roofline.is_some(), regime != "host-e2e");
    }
    for (regime, why) in [("graph", "cuda"), ("host-enqueue", "use host-e2e")] {
        let (baseline, _) = of(regime);
        assert_eq!(baseline.outcome.status, Status::Unsupported);
        assert!(baseline.outcome.reason.as_ref().unwrap().contains(why), "{baseline:?}");
    }
}

#[test]
fn traces_contain_device_spans_per_kernel() {
    let scene = cpu_scene("");
    let ended = scene.run("run c.yml --out out --profile --format jsonl");
    for record in ended.expect_code(0).records() {
        let file = fs::read(scene.path("out").join(record.profile.trace.as_ref().unwrap())).unwrap();
        let trace: Value = serde_json::from_slice(&file).unwrap();
        let spans = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
        let on_device = spans.filter(|event| event["pid"] == 2).map(|event| event["dur"].as_f64().unwrap());
        let (count, micros) = on_device.fold((0, 0.0), |(count, sum), dur| (count + 1, sum + dur));
        let kernels: f64 = record.profile.kernels.iter().map(|kernel| kernel.nanos).sum();
        assert_eq!((count, record.profile.kernels.len()), (20, 1));
        assert!((kernels * 20.0 / 1e3 / micros - 1.0).abs() < 1e-6, "{kernels} {micros}");
    }
}

#[test]
fn memory_profiles_have_snapshots_and_a_page() {
    let scene = cpu_scene("");
    let records = scene.run("run c.yml --out out --memory --format jsonl").expect_code(0).records();
    let (baseline, quantized) = (find_record(&records, "baseline"), find_record(&records, "int8wo"));
    for record in [baseline, quantized] {
        let memory = record.footprint.memory.as_ref().unwrap();
        // At least weight, input and one output.
        let least = record.weights.weight_bytes.unwrap() + 2 * 8 * 64 * 4;
        assert!(memory.peak_allocated.unwrap() >= least, "{memory:?} {least}");
        assert_eq!(record.footprint.peak_bytes, memory.peak_allocated);
        let folder = scene.path("out").join(record.footprint.memory_profile.as_ref().unwrap());
        for name in ["snapshot_before.json", "snapshot_after.json"] {
            let snapshot: Value = serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap();
            let bytes = snapshot["allocated_bytes"].as_u64().unwrap();
            assert!(
                bytes >= record.weights.weight_bytes.unwrap() && bytes <= memory.peak_allocated.unwrap(),
                "{snapshot}"
            );
        }
        let page = fs::read_to_string(folder.join("memory.html")).unwrap();
        assert!(page.contains(&*record.case.id) && !page.contains("http://"));
        assert_eq!(memory.bound, PeakBound::Exact);
    }
    let saving = quantized.footprint.memory.as_ref().unwrap().saving.unwrap();
    let ratio = baseline.footprint.peak_bytes.unwrap() as f64 / quantized.footprint.peak_bytes.unwrap() as f64;
    assert!((saving - ratio).abs() < 1e-9 && baseline.footprint.memory.as_ref().unwrap().saving.is_none());
}

#[test]
fn devices_without_memory_profiling_are_noted() {
    let scene = Scene::with(
        "recipes: [baseline]\ndevice: mock\ndtype: f32\nimplementations: [eager]\nmodels: [{shapes: [{name: custom, shapes: [[8, 64, 64]]}]}]",
    );
    for (flags, warned) in [("", false), ("--memory", true)] {
        let records = scene.run(&format!("run c.yml --out out{flags} --format jsonl {flags}")).expect_code(0).records();
        assert!(records[0].footprint.memory.is_none());
        assert_eq!(records[0].warnings.has(WarningCode::MissingMemory), warned, "{records:?}");
    }
}

#[test]
fn percentiles_exist_in_every_requested_regime() {
    let regimes = "regimes: [device-cold, device-hot, host-e2e]";
    let in_a_file = cpu_scene(&format!("percentiles: true\n{regimes}"));
    let asked = [(cpu_scene(regimes), "--percentiles"), (in_a_file, "")];
    for (scene, option) in asked {
        let records = scene.run(&format!("run c.yml {option} --out out --format jsonl")).expect_code(0).records();
        assert_eq!(records.len(), 6);
        for record in records {
            let (times, median) = (record.time.launch_ns.unwrap(), record.time.time_ns.unwrap().median);
            let [p50, p95, p99] = [times.p50, times.p95, times.p99].map(Option::unwrap);
            assert!(times.count >= 100 && p50 <= p95 && p95 <= p99 && p50 > median / 100.0, "{times:?} {median}");
            assert!(record.time.iterations_ns.is_empty());
        }
    }
    let scene = cpu_scene("regimes: [device-hot]");
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(0).records();
    assert!(records.iter().all(|record| record.time.launch_ns.is_none()));
}

#[test]
fn slope_stopwatches_have_no_percentiles() {
    let scene = Scene::with(
        "recipes: [baseline]\ndevice: mock\ndtype: f32\nimplementations: [eager]\npercentiles: true\nmock: [{nanos: 9000, fixed: 40000}]\nmodels: [{shapes: [{name: custom, shapes: [[8, 64, 64]]}]}]",
    );
    let record = scene.run("run c.yml --out out --format jsonl").expect_code(0).records().remove(0);
    assert_eq!(record.time.launch_ns, None);
    assert!(record.warnings.has(WarningCode::MissingPercentiles), "{record:?}");
}

#[test]
fn every_launch_measures_every_case() {
    let scene = cpu_scene("regimes: [device-hot]");
    let records =
        scene.run("run c.yml --launches 3 --max-time 100ms --out out --format jsonl").expect_code(0).records();
    assert_eq!(records.len(), 2);
    for record in &records {
        let (mut found, time) = (record.time.of_processes_ns.clone(), record.time.time_ns.unwrap());
        found.sort_by(f64::total_cmp);
        assert!(found.len() == 3 && found[0] < found[2], "one process three times: {found:?}");
        assert!(time.lo.unwrap() < found[1] && found[1] < time.hi.unwrap(), "{time:?} {found:?}");
    }
    assert!(records[1].speedup.is_some());
    let one = scene.run("run c.yml --max-time 100ms --out one --format jsonl").expect_code(0).records();
    assert!(one[0].time.of_processes_ns.is_empty());
}

#[test]
fn cpu_operators_use_several_buffer_placements() {
    let scene = cpu_scene("regimes: [device-hot]");
    let records = |command: &str| scene.run(&format!("{command} --format jsonl")).expect_code(0).records();
    let sums = records("ops --ops stream_add --axis elements=65536 --dtypes f32 --device cpu --max-time 1s --out ops");
    assert!(sums.iter().any(|record| record.speedup.is_some()), "{sums:?}");
    for Record { time, speedup, .. } in sums.iter().filter(|record| record.is_ok()) {
        let (found, whole) = (&time.of_places_ns, time.time_ns.unwrap());
        assert!((4..=12).contains(&found.len()) && found.iter().any(|one| *one != found[0]), "{found:?}");
        let mean = (found.iter().map(|one| one.ln()).sum::<f64>() / found.len() as f64).exp();
        assert!((whole.median / mean - 1.0).abs() < 1e-9 && whole.lo.unwrap() < mean, "{whole:?} {found:?}");
        let narrow = |lo: f64, hi: f64, middle: f64| (hi - lo) / 2.0 <= 0.01 * middle;
        let ratio = speedup.as_ref().is_none_or(|one| narrow(one.lo.unwrap(), one.hi.unwrap(), one.ratio));
        let precise = narrow(whole.lo.unwrap(), whole.hi.unwrap(), whole.median) && ratio;
        assert_eq!(time.converged, Some(precise), "{whole:?} {speedup:?}");
    }
    let models = records("run c.yml --max-time 100ms --out out");
    assert!(models.iter().all(|record| record.time.of_places_ns.is_empty()));
}

#[test]
fn noise_floor_sets_the_verdict_margin() {
    let scene = Scene::with(
        "recipes: [baseline, int8wo]\ndevice: mock\ndtype: f32\nimplementations: [eager]\nmodels: [{shapes: [{name: custom, shapes: [[8, 64, 64]]}]}]",
    );
    let margin = |out: &str| {
        let records = scene.run(&format!("run c.yml --out {out} --format jsonl")).expect_code(0).records();
        find_record(&records, "int8wo").speedup.as_ref().unwrap().margin.unwrap()
    };
    assert_eq!(margin("before"), 0.02);
    let ended = scene.run("noise --device mock --comparisons 24 --format json");
    let noise: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    assert_eq!((noise["comparisons"].as_u64(), noise["false_verdict_rate"].as_f64()), (Some(24), Some(0.0)));
    let floor = noise["middle_floor"].as_f64().unwrap();
    assert!(floor > 0.0 && floor < 0.01, "{floor}");
    let workloads = noise["workloads"].as_array().unwrap();
    let cases: Vec<&str> = workloads.iter().map(|workload| workload["case"].as_str().unwrap()).collect();
    assert!(cases.iter().filter(|case| case.contains("/linear/")).count() == 2 && cases.len() == 6, "{cases:?}");
    assert!(cases.iter().any(|case| case.contains("/linear_adamw_step/")), "{cases:?}");
    assert!(
        workloads.iter().all(|workload| workload["comparisons"] == 4 && workload["stopwatch"] == "mock"),
        "{noise}"
    );
    assert_eq!(noise["processes"], 4);
    // A low noise floor has no effect, a high one does.
    assert_eq!(margin("after"), 0.02);
    let some = scene.run("noise --device mock --comparisons 3 --filter step");
    let not_kept = "margin  2.00 %, not stored: --filter excluded workloads";
    assert!(some.expect_code(0).stdout.contains(not_kept), "{some:?}");
    let kept = scene.path("cache/calorimeter/noise/mock.json");
    let mut noise: Value = serde_json::from_slice(&fs::read(&kept).unwrap()).unwrap();
    noise["middle_floor"] = 0.05.into();
    fs::write(&kept, noise.to_string()).unwrap();
    assert_eq!(margin("noisy"), 0.1);
    noise["measured"] = "2024-01-31T12:00:00+00:00".into();
    fs::write(&kept, noise.to_string()).unwrap();
    let ended = scene.run("run c.yml --out old --format jsonl");
    let records = ended.expect_code(0).records();
    assert_eq!(find_record(&records, "int8wo").speedup.as_ref().unwrap().margin, Some(0.02));
    let prefix = "note: mock: the saved noise floor is ignored: it was measured on 2024-01-31";
    assert_eq!(ended.stderr.matches(prefix).count(), 1, "{ended:?}");
}

#[test]
fn deep_doctor_passes_on_the_mock_device() {
    let scene = Scene::new();
    let ended = scene.run("doctor --deep --device mock --format json");
    let report: Value = serde_json::from_str(&ended.expect_code(0).stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 21);
    assert!(checks.iter().all(|check| check["passed"] == true), "{report:#}");
    assert!(scene.run("doctor --deep --device mock").expect_code(0).stdout.matches("  holds  ").count() == 21);
}

#[test]
#[ignore = "needs Vulkan"]
fn autotune_modes_control_the_cache() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: vulkan\ndtype: f32\nimplementations: [eager]\n{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[16, 64, 64]]}}]}}]\n"
    ));
    let run = |arguments: &str| scene.run(&format!("run c.yml --format jsonl {arguments}")).expect_code(0).records();
    let forbidden = run("--out off --autotune off").remove(0);
    assert_eq!(forbidden.outcome.status, Status::Skipped, "{forbidden:?}");
    assert!(forbidden.outcome.reason.unwrap().contains("--autotune cached"));
    let fresh = run("--out fresh --autotune fresh").remove(0);
    assert!(fresh.preparation.tuning.is_some() && fresh.execution.autotune.len() == 1, "{fresh:?}");
    assert!(scene.path("fresh/tuning").is_dir());
    let cached = run("--out cached").remove(0);
    assert!(cached.preparation.tuning.is_some(), "fresh results are not cached: {cached:?}");
    let again = run("--out again --autotune off").remove(0);
    assert_eq!((again.outcome.status, again.preparation.tuning), (Status::Ok, None), "{again:?}");
    assert_eq!(again.execution.autotune, cached.execution.autotune);
}
