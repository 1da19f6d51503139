//! Real devices at small sizes.

use crate::scene::{ProgramOutput, Scene, find_record};
use calorimeter_case::WarningCode;
use calorimeter_sinks::memory_page::PeakBound;
use calorimeter_sinks::{Record, Status};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

const SHORT: &str = "timing: {min_time: 0s, max_time: 1s, warm_up: 1us, max_warm_up: 1us, min_windows: 6, max_windows: 6, window: 20us}";

#[test]
fn models_are_correct_on_the_cpu() {
    let scene = Scene::with(&format!(
        "recipes: [baseline, int8wo]
device: cpu
dtype: f32
implementations: [eager]
{SHORT}
models:
  - {{model: linear, shapes: [{{name: custom, shapes: [[1, 64, 32], [7, 33, 5]]}}]}}
  - {{model: ln_linear_gelu, shapes: [{{name: custom, shapes: [[16, 64, 64]]}}]}}
  - {{model: transformer_block, shapes: [{{name: custom, shapes: [[2, 64, 64]]}}]}}
"
    ));
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(0).records();
    assert_eq!(records.len(), 8);
    for record in &records {
        let id = &record.case.id;
        assert_eq!(record.outcome.status, Status::Ok, "{record:?}");
        let accuracy = record.accuracy.as_ref().unwrap();
        let [kernel, rel_l2] = [accuracy.kernel_rel_l2, accuracy.rel_l2].map(Option::unwrap);
        let [stored, unquantized] =
            [record.weights.weight_bytes, record.weights.baseline_weight_bytes].map(Option::unwrap);
        assert!(kernel < 1e-6, "{id}: {kernel}");
        assert!(accuracy.cosine.unwrap() > 0.999 && accuracy.max_abs.is_some(), "{id}: {accuracy:?}");
        if record.case.recipe == "int8wo" {
            let sqnr = accuracy.sqnr_db.unwrap();
            assert!((30.0..60.0).contains(&sqnr), "{id}: {sqnr} dB");
            assert!((1e-3..3e-2).contains(&rel_l2), "{id}: {rel_l2}");
            // Rows are packed in blocks of 32 values.
            assert!(stored * 3 < unquantized || id.contains("-k33-"), "{id}: {stored} of {unquantized}");
            assert_eq!(*record.speedup.as_ref().unwrap().vs, id.replace("int8wo", "baseline"));
        } else {
            assert!(rel_l2 < 1e-6 && stored == unquantized && record.speedup.is_none(), "{id}");
        }
        assert_eq!((record.execution.stopwatch.as_deref(), record.time.windows.len()), (Some("wall"), 6), "{id}");
        let [lo, median, hi] =
            record.time.time_ns.map(|time| [time.lo.unwrap(), time.median, time.hi.unwrap()]).unwrap();
        assert!(0.0 < lo && lo <= median && median <= hi, "{id}");
        assert!(
            record.preparation.prime_ns.is_some()
                && record.preparation.granularity_ns.is_some()
                && record.rates.tflops.is_some(),
            "{id}"
        );
    }
    let text = std::fs::read_to_string(scene.path("out/journal.jsonl")).unwrap();
    for line in text.lines().filter(|line| line.starts_with("{\"record\"")) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        for window in line["record"]["windows"].as_array().unwrap() {
            assert!(window["launches"].is_u64() && window["nanos"].is_u64(), "{window}");
        }
    }
}

#[test]
fn attention_is_correct_in_bf16_on_the_cpu() {
    // The comment shares the peaks of the CPU with other tests.
    let scene = Scene::with("# device: cpu");
    let command =
        "gemm --ops attention,attention_causal --dtypes bf16 --device cpu --max-time 20ms --out out --format jsonl";
    let records = scene.run(command).expect_code(0).records();
    let wrong: Vec<&Record> = records.iter().filter(|record| record.outcome.status != Status::Ok).collect();
    assert!(records.len() >= 4 && wrong.is_empty(), "{wrong:?}");
    assert!(records.iter().all(|record| record.case.element.to_string() == "bf16"));
}

#[test]
fn dense_semi_sparse_cases_carry_a_warning() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\nsparsities: [semi-sparse, block]\ndevice: cpu\ndtype: f32\n{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[4, 64, 64]]}}]}}]\n"
    ));
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(0).records();
    for (recipe, warned) in [("/baseline/", false), ("+semi-sparse/", true), ("+block-0.9-64/", false)] {
        let record = find_record(&records, recipe);
        assert_eq!(record.outcome.status, Status::Ok, "{record:?}");
        assert_eq!(record.warnings.has(WarningCode::DenseKernel), warned, "{record:?}");
    }
}

#[test]
fn native_cpu_recipes_compare_with_eager() {
    let scene = Scene::with(&format!(
        "recipes: [baseline, int8wo, int8dq, int4wo-32, float8wo]
device: cpu
dtype: bf16
implementations: [native]
{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[1, 64, 33], [33, 96, 65]]}}]}}]
"
    ));
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(0).records();
    let native = |record: &&Record| record.case.implementation == calorimeter_case::Implementation::Native;
    for record in records.iter().filter(native) {
        if record.case.recipe == "float8wo" {
            let why = record.outcome.reason.as_deref().unwrap();
            assert!(record.outcome.status == Status::Unsupported && why.contains("int4wo-32"), "{record:?}");
            continue;
        }
        assert_eq!(record.outcome.status, Status::Ok, "{record:?}");
        assert!(record.execution.kernel.as_deref().unwrap().contains(" threads"), "{record:?}");
        assert!(record.accuracy.as_ref().unwrap().kernel_rel_l2.unwrap() < 3e-3, "{record:?}");
    }
    assert_eq!(records.iter().filter(native).count(), 10);
}

#[test]
fn results_do_not_depend_on_other_cases() {
    let scene = Scene::with(&format!(
        "recipes: [baseline, int8wo]\ndevice: cpu\ndtype: f32\nimplementations: [eager]\n{SHORT}
models: [{{model: ln_linear_relu, shapes: [{{name: custom, shapes: [[4, 32, 32]]}}]}}]\n"
    ));
    let both = scene.run("run c.yml --out both --format jsonl").expect_code(0).records();
    let alone = scene.run("run c.yml --out alone --format jsonl --filter baseline").expect_code(0).records();
    assert_eq!(alone.len(), 1);
    assert_eq!(alone[0].accuracy, find_record(&both, "baseline").accuracy);
}

/// Runs on every Vulkan adapter, including software ones, which CI installs.
#[test]
#[ignore = "needs Vulkan"]
fn linear_layers_pass_the_gate_on_vulkan() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: vulkan\ndtype: f32\nimplementations: [eager]\n{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[16, 64, 32]]}}]}}]\n"
    ));
    let record = scene.run("run c.yml --out out --format jsonl").expect_code(0).records().remove(0);
    assert_eq!(record.outcome.status, Status::Ok, "{record:?}");
    assert!(record.accuracy.as_ref().unwrap().kernel_rel_l2.unwrap() < 1e-6, "{record:?}");
    assert!(!record.time.windows.is_empty() && record.time.time_ns.is_some_and(|time| time.median > 0.0));
    assert!(scene.path("cache/calorimeter/tuning").is_dir(), "autotune results are stored");
}

/// Both implementations dequantize the weight to f32, for a moment that samples may miss.
#[test]
#[ignore = "needs Vulkan"]
fn vulkan_memory_peaks_are_exact_or_bounds() {
    let scene = Scene::with(&format!(
        "recipes: [baseline, int8wo]\ndevice: vulkan\ndtype: f32\nimplementations: [eager, fused]\n{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[8, 64, 64]]}}]}}]\n"
    ));
    let records = scene.run("run c.yml --out out --memory --format jsonl").expect_code(0).records();
    let (output, weight) = (8 * 64 * 4, 64 * 64 * 4);
    let exact = |record: &Record| record.footprint.memory.as_ref().unwrap().bound == PeakBound::Exact;
    let baseline = &records[0];
    assert_eq!((records.len(), baseline.case.id.contains("baseline/eager")), (4, true));
    for record in &records {
        // The host clock includes gaps; timestamps exclude gaps between launches.
        let counted = record.execution.stopwatch.as_deref() == Some("slope");
        assert_eq!(record.time.with_gaps_ns, record.time.time_ns.map(|time| time.median).filter(|_| counted));
        let memory = record.footprint.memory.as_ref().unwrap();
        let above = memory.peak_above_inputs.unwrap();
        let all = if record.case.recipe == "int8wo" { weight + output } else { output };
        assert!(above >= output && memory.peak_allocated.unwrap() >= record.weights.weight_bytes.unwrap() + 2 * output);
        assert_eq!(exact(record), above == all, "{memory:?}");
        assert_eq!(memory.saving.is_some(), record.case.id != baseline.case.id, "{memory:?}");
        let both = exact(record) && exact(baseline);
        assert_eq!(memory.saving_bound == PeakBound::Exact, both || memory.saving.is_none(), "{memory:?}");
        let page = scene.path("out").join(record.footprint.memory_profile.as_ref().unwrap()).join("memory.html");
        assert!(std::fs::read_to_string(page).unwrap().contains("not single blocks"));
    }
}

/// Messages during discovery appear only if the requested device is missing, messages of an opened device always.
#[test]
#[ignore = "needs Vulkan"]
fn vulkan_driver_messages_are_prefixed() {
    let scene = Scene::new();
    let command = |arguments: &str| {
        let mut command = scene.command(arguments);
        // The Vulkan loader prints what it does.
        command.env("VK_LOADER_DEBUG", "all");
        command
    };
    let listed = ProgramOutput::from_command(&mut command("list devices"));
    assert!(listed.expect_code(0).stderr.is_empty(), "{listed:?}");
    let missing = ProgramOutput::from_command(&mut command("run quickstart --device vulkan:97"));
    assert!(missing.error().contains("; the driver reports: "), "{missing:?}");
    let mut doctor = command("doctor --deep --device vulkan");
    let mut doctor = doctor.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first check is printed once the device is open; the remaining checks take long.
    let shown = BufReader::new(doctor.stdout.take().unwrap()).lines().nth(1).unwrap().unwrap();
    doctor.kill().unwrap();
    let messages = String::from_utf8(doctor.wait_with_output().unwrap().stderr).unwrap();
    let (duration, messages) = messages.split_once('\n').unwrap();
    assert!(duration.starts_with("expected duration: "), "{duration}");
    assert!(!messages.is_empty(), "{shown}");
    assert!(messages.lines().all(|line| line.starts_with("driver of vulkan: ")), "{shown}\n{messages}");
}

/// The device thread panics, others receive no error, and later results of the process would be wrong. The next case
/// must use a new process.
fn check_failed_allocation(scene: &Scene) {
    let records = scene.run("run c.yml --out out --format jsonl").expect_code(5).records();
    let refused = records.iter().position(|record| !record.is_ok()).expect("one that is refused");
    let outcome = &records[refused].outcome;
    assert_eq!(outcome.status, Status::Failed, "{outcome:?}");
    assert!(outcome.reason.as_ref().is_some_and(|reason| reason.contains("device thread DSD-")), "{outcome:?}");
    let next = &records[refused + 1..];
    assert!(!next.is_empty() && next.iter().all(Record::is_ok), "{next:?}");
}

#[test]
#[ignore = "needs Vulkan"]
fn failed_vulkan_allocations_cost_one_case() {
    // The software adapter allows buffers up to 128 MiB, hardware often up to 2 GiB; this output needs 16.
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: vulkan\ndtype: f32\nimplementations: [eager]\n{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[65536, 1, 65536], [16, 64, 32], [16, 64, 48], [16, 64, 80]]}}]}}]\n"
    ));
    check_failed_allocation(&scene);
}

#[test]
#[ignore = "needs CUDA"]
fn failed_cuda_allocations_cost_one_case() {
    // The pool allocates at most a quarter of the memory per buffer; an output of 40 GB passes the check of the total.
    check_failed_allocation(&Scene::with(&format!(
        "recipes: [baseline]\ndevice: cuda\ndtype: bf16\nimplementations: [eager]\n{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[200000, 16, 100000], [256, 256, 256], [256, 256, 512], [256, 512, 512]]}}]}}]\n"
    )));
}

/// burn's pool allocates driver pages, which the driver records; `native` allocates each buffer from the driver.
#[test]
#[ignore = "needs CUDA"]
fn cuda_driver_allocations_are_recorded() {
    let scene = Scene::with(&format!(
        "recipes: [baseline]\ndevice: cuda\ndtype: f32\nimplementations: [eager, fused, native]\n{SHORT}
models: [{{shapes: [{{name: custom, shapes: [[256, 512, 512]]}}]}}]\n"
    ));
    let records = scene.run("run c.yml --out out --memory --format jsonl").expect_code(0).records();
    assert_eq!(records.len(), 3);
    let output = 256 * 512 * 4;
    for record in &records {
        let memory = record.footprint.memory.as_ref().unwrap();
        let all = record.weights.weight_bytes.unwrap() + 2 * output;
        assert!(memory.peak_reserved.unwrap() >= all && record.footprint.peak_bytes.unwrap() >= all, "{record:?}");
        assert!(memory.peak_above_inputs.unwrap() >= output, "{record:?}");
        let folder = scene.path("out").join(record.footprint.memory_profile.as_ref().unwrap());
        let snapshot = std::fs::read(folder.join("snapshot_after.json")).unwrap();
        let snapshot: serde_json::Value = serde_json::from_slice(&snapshot).unwrap();
        let blocks = snapshot["largest"].as_array().unwrap().iter().map(|block| block["bytes"].as_u64().unwrap());
        assert_eq!(
            (snapshot["source"].as_str(), Some(blocks.sum())),
            (Some("cupti"), snapshot["reserved_bytes"].as_u64())
        );
        assert_eq!(
            snapshot["allocated_bytes"].is_u64(),
            record.case.implementation != calorimeter_case::Implementation::Native
        );
    }
}
