//! Files of accelerator-microbenchmarks version 2: planned cases, errors, and the two result files.

use crate::golden::compare_with_golden;
use crate::scene::{ProgramOutput, Scene, fixture, not_ok};
use calorimeter_sinks::Status;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// All published files, sorted.
pub(crate) fn version_2_files() -> Vec<PathBuf> {
    let mut files = Vec::new();
    add_files(&fixture("accelerator-v2/configs"), &mut files);
    files.sort();
    files
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            add_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

/// Name of a published file.
fn short_name(path: &Path) -> String {
    path.strip_prefix(fixture("accelerator-v2/configs")).unwrap().display().to_string()
}

fn run(scene: &Scene, file: &Path, options: &str) -> ProgramOutput {
    scene.run(&format!("run {} {options}", file.display()))
}

fn planned(config: &str) -> Vec<Value> {
    let options = "--device mock --implementations eager --dry-run --format jsonl";
    Scene::with(config).run(&format!("run c.yml {options}")).expect_code(0).objects()
}

/// Size of a case, such as `m8-n16`, without the number of devices, which depends on the machine.
fn planned_size(case: &Value) -> &str {
    let size = case["id"].as_str().unwrap().rsplit('/').next().unwrap();
    size.split("-devices").next().unwrap()
}

/// Lists each file with its cases; consecutive cases of one benchmark share a line with the first and the last size.
#[test]
fn planned_cases_match_golden_list() {
    let (mut list, mut count) = (String::new(), 0);
    for file in version_2_files() {
        let ended = run(&Scene::new(), &file, "--device cpu --implementations eager --dry-run --format jsonl");
        let cases = ended.expect_code(0).objects();
        count += cases.len();
        list += &format!("{}\n", short_name(&file));
        let text = |case: &Value, key: &str| case[key].as_str().unwrap_or("-").to_owned();
        let label = |case: &Value| {
            let words = ["name", "workload", "dtype", "output_dtype"].map(|key| text(case, key));
            format!("{}; {}", words.join("; "), case["reason"].as_str().unwrap_or("supported"))
        };
        for cases in cases.chunk_by(|a, b| label(a) == label(b)) {
            let (first, last) = (planned_size(&cases[0]), planned_size(&cases[cases.len() - 1]));
            list += &format!("  {}; {} from {first} to {last}\n", label(&cases[0]), cases.len());
        }
    }
    compare_with_golden("golden/accelerator_v2_plan.txt", &list);
    assert_eq!((version_2_files().len(), count), (26, 177));
}

#[test]
fn sweeps_expand_with_the_last_key_fastest() {
    for (benchmark, expected) in [
        ("{name: quantization, m: 2, sweep: {n: [4, 3]}}", "m2-n4 m2-n3"),
        ("{name: quantization, sweep: {n: [4, 3], m: {start: 1, end: 2}}}", "m1-n4 m2-n4 m1-n3 m2-n3"),
        ("{name: quantization, n: 1, sweep: {m: {start: 1, end: 8, multiplier: 2}}}", "m1-n1 m2-n1 m4-n1 m8-n1"),
        (
            "{name: quantization, n: 1, sweep: {m: {start: 1, end: 8, multiplier: 1, increase_by: 3}}}",
            "m1-n1 m4-n1 m7-n1",
        ),
        // A swept value overrides a single one.
        ("{name: quantization, n: 1, m: 9, sweep: {m: 2}}", "m2-n1"),
    ] {
        let cases = planned(&format!("benchmarks: [{benchmark}]"));
        assert_eq!(cases.iter().map(planned_size).collect::<Vec<_>>().join(" "), expected, "{benchmark}");
    }
}

#[test]
fn benchmarks_select_operators() {
    for (benchmark, expected) in [
        ("{name: gemm_generalized, m: 8, k: 8, n: 8}", "gemm_simple_with_dtype m8-k8-n8"),
        ("{name: gemm_generalized, m: 8, k: 8, n: 8, use_scaling_factors: true}", "gemm m8-k8-n8"),
        ("{name: gemm_generalized, m: 8, k: 8, n: 8, beta: 0.5}", "gemm_generalized m8-k8-n8"),
        ("{name: gemm_generalized, m: 8, k: 8, n: 8, transpose_b: true}", "gemm_generalized m8-k8-n8"),
        ("{name: gemm_generalized, m: 8, k: 8, n: 8, alpha: -1}", "gemm_generalized m8-k8-n8"),
        ("{name: hbm_bandwidth, size: 8, op_type: Triad}", "stream_triad elements8"),
        ("{name: hbm_bandwidth, size: 8, device_id: 1}", "hbm_bandwidth size8"),
        (
            "{name: attention_flashed, seq_len: 16, num_q_heads: 2, num_kv_heads: 2, causal: false}",
            "attention batch1-heads2-sequence16-head_dim128",
        ),
        ("{name: attention_flashed, seq_len: 16}", "attention_causal batch1-heads56-sequence16-head_dim128"),
        (
            "{name: attention_flashed, seq_len: 16, mode: bwd}",
            "attention_flashed batch1-seq_len16-num_q_heads56-num_kv_heads56-head_dim128",
        ),
        ("{name: swiglu, dim: 8, batch: 4}", "swiglu_fwd m4-n16"),
        ("{name: rmsnorm, dim: 8, batch: 4, mode: bwd}", "rmsnorm_bwd m4-n8"),
        ("{name: sigmoid, dim: 8, batch: 4}", "inference_sigmoid m4-n8"),
        ("{name: rope}", "rope batch32-heads32-seq_len1024-head_dim128"),
        ("{name: simple_add}", "stream_add elements1048576"),
        ("{name: transformer_layer_moe, model: LLM-36B}", "transformer_layer_moe model_dim7168-mslen1024"),
        ("{name: all_reduce, matrix_dim: 4, reduce_op: mean}", "pmean matrix_dim4"),
        ("{name: reduce_scatter, matrix_dim: 4}", "psum_scatter matrix_dim4"),
        ("{name: host_to_device}", "pageable_host_to_device data_size_mib64"),
        ("{name: device_to_device}", "device_to_device data_size_mib1024"),
        ("{name: device_to_device, data_size_mib: 1, direction: bi}", "send_recv num_elements524288"),
    ] {
        let cases = planned(&format!("benchmarks: [{benchmark}]"));
        let found = format!("{} {}", cases[0]["workload"].as_str().unwrap(), planned_size(&cases[0]));
        assert_eq!(found, expected, "{benchmark}");
    }
}

#[test]
fn closer_values_take_precedence() {
    let scene = Scene::with(
        "global: {dtype: float16, num_runs: 50, mode: bwd, min_duration_s: 7}
benchmarks:
- {name: attention_flashed, model: LLM-100B, num_kv_heads: 64, mode: fwd, csv_shapes: sizes.csv, sweep: {batch: [1, 2]}}
- {name: simple_add, num_runs: 3, xprof_timing: true}
",
    );
    scene.write("sizes.csv", "seq_len, batch\n16,5\n32,6\n");
    let options = "--device mock --implementations eager";
    let cases = scene.run(&format!("run c.yml {options} --dry-run --format jsonl")).expect_code(0).objects();
    let ids: Vec<&str> = cases.iter().map(|case| case["id"].as_str().unwrap()).collect();
    let attention = |batch: u64, sequence: u64| {
        format!("gemm/attention_causal/baseline/eager/mock/f16/batch{batch}-heads64-sequence{sequence}-head_dim128")
    };
    let expected = [attention(1, 16), attention(2, 16), attention(1, 32), attention(2, 32)];
    assert_eq!(ids[..4], expected);
    assert_eq!(
        (ids[4], &cases[4]["profiler"]),
        ("calibration/stream_add/baseline/eager/mock/bf16/elements1048576", &true.into())
    );
    scene.run(&format!("run c.yml {options} --filter stream --out out")).expect_code(0);
    let header = scene.journal("out").header;
    let timing = |index: usize| header.config["resolved"][index]["timing"].clone();
    assert_eq!([timing(0), timing(4)].map(|timing| timing["min_windows"].clone()), [50, 30]);
    assert_eq!(timing(0)["min_time"], timing(0)["max_time"], "the minimum duration is longer than the default maximum");
}

#[test]
fn invalid_files_are_refused_with_position() {
    let entry = |entry: &str| format!("benchmarks:\n- name: quantization\n  {entry}\n");
    for (config, expected) in [
        (entry("m: many"), ".yml:3:6: benchmarks[0]: invalid m \"many\": expected an integer from 0"),
        (entry("m: 0"), ".yml: benchmarks[0]: quantization: invalid m 0: expected at least 1"),
        (
            entry("m: [1, 2]"),
            ".yml:3:6: benchmarks[0].m: expected one value, an integer from 0 or a word, found a list",
        ),
        (entry("sweep: {m: []}"), ".yml:3:14: benchmarks[0].sweep.m: empty list; add a value or omit the key"),
        (entry("sweep: {mm: 2}"), ".yml:3:15: benchmarks[0].sweep: unknown parameter \"mm\"; did you mean \"m\"?"),
        (entry("kk: 2"), ".yml:3:7: benchmarks[0]: unknown parameter \"kk\"; known: "),
        (entry("num_runs: 200000"), ".yml:2:3: benchmarks[0]: invalid num_runs 200000: expected at most 100000"),
        (entry("min_duration_s: -1"), ".yml:2:3: benchmarks[0]: min_duration_s: invalid duration \"-1\""),
        (entry("model: LLM-1B"), ".yml:3:10: benchmarks[0].model: unknown model \"LLM-1B\""),
        (entry("csv_shapes: no.csv"), ".yml:3:15: benchmarks[0].csv_shapes: found no file \"no.csv\"; searched "),
        (entry("csv_shapes: https://a/b"), ".yml:3:15: benchmarks[0].csv_shapes: cannot read https://a/b: download "),
        (entry("csv_shapes: empty.csv"), "empty.csv:1: nothing to run: the file has no rows"),
        (entry("csv_shapes: wrong.csv"), "wrong.csv:3: invalid n \"x\": expected an integer from 0"),
        (entry("csv_shapes: gap.csv"), "gap.csv:2: empty cell of n; add a value"),
        (entry("csv_shapes: ragged.csv"), "ragged.csv:2: CSV error: record 1"),
        (
            "benchmarks: [{name: quantizatoin}]".into(),
            ".yml:1:21: benchmarks[0].name: unknown benchmark \"quantizatoin\"; did you mean \"quantization\"?",
        ),
        (
            "global: {dtyp: f32}\nbenchmarks: [{name: rope}]".into(),
            ".yml:1:16: global: unknown parameter \"dtyp\"; did you mean \"dtype\"?",
        ),
        (
            "global: {dtype: bfloat61}\nbenchmarks: [{name: rope}]".into(),
            ".yml:1:17: global: dtype: unknown dtype \"bfloat61\"; did you mean \"bfloat16\"?",
        ),
        (
            "hardware: {hbm_bw: fast}\nbenchmarks: [{name: rope}]".into(),
            ".yml:1:11: hardware: expected a number, or a map",
        ),
        ("global: {}\nbenchmarks: []".into(), ".yml:2:13: nothing to run: benchmarks is empty"),
        ("global: {}\nbenchmarks: [{m: 1}]".into(), ".yml:2:14: benchmarks[0]: missing name"),
        ("globl: {}\nbenchmarks: [{name: rope}]".into(), ".yml:1:1: unknown key \"globl\"; did you mean \"global\"?"),
        (
            entry("sweep: {m: {start: 1, end: 200}, n: {start: 1, end: 200}}"),
            ".yml:2:3: benchmarks[0]: more than 10000 cases up to here; split the file",
        ),
    ] {
        let scene = Scene::with(&config);
        scene.write("empty.csv", "m,n\n");
        scene.write("wrong.csv", "m,n\n1,2\n1,x\n");
        scene.write("gap.csv", "m,n\n1,\n");
        scene.write("ragged.csv", "m,n\n1\n");
        let ended = scene.run("run c.yml --dry-run");
        let expected = if expected.starts_with('.') { format!("c{expected}") } else { expected.into() };
        assert!(ended.error().starts_with(&expected), "{config}: {ended:?}");
    }
}

#[test]
fn public_files_run_on_the_cpu_when_scaled() {
    let (mut ok, mut unsupported) = (0, 0);
    for file in version_2_files() {
        let scene = Scene::with("# device: cpu");
        let options =
            "--device cpu --implementations eager --scale-shapes 1/256 --max-time 1ms --out out --format jsonl";
        let ended = run(&scene, &file, options);
        let records = ended.expect_code(0).records();
        assert!(not_ok(&records).iter().all(|record| record.outcome.status == Status::Unsupported), "{ended:?}");
        let measured = records.iter().filter(|record| record.outcome.status == Status::Ok).count();
        (ok, unsupported) = (ok + measured, unsupported + records.len() - measured);
        let results: Vec<Value> = fs::read_to_string(scene.path("out/detailed.json"))
            .map_or_else(|_| Vec::new(), |text| serde_json::from_str(&text).unwrap());
        let rows = fs::read_to_string(scene.path("out/summary.csv")).unwrap_or_default();
        assert_eq!((results.len(), rows.lines().skip(1).count()), (measured, measured), "{}", file.display());
    }
    assert_eq!((ok, unsupported), (79, 98));
}

#[test]
fn small_file_yields_both_results() {
    let scene = Scene::with(
        "# device: cpu
global: {num_runs: 12, warmup_tries: 1, dtype: float32}
hardware: {peak_tflops: 0.5, hbm_bw: {1: 10, 1000001: 20}}
benchmarks:
- {name: gemm_generalized, m: 16, k: 16, n: 16, in_dtype: bfloat16}
- {name: hbm_bandwidth, sweep: {size: [256, 512]}, op_type: add}
- {name: all_gather, matrix_dim: 1}
",
    );
    let ended = scene.run("run c.yml --device cpu --implementations eager --max-time 1ms --out out --format jsonl");
    let records = ended.expect_code(0).records();
    let results: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(scene.path("out/detailed.json")).unwrap()).unwrap();
    assert_eq!((records.len(), results.len()), (4, 3));
    let of = |index: usize, part: &str| results[index]["metadata"][part].clone();
    let gemm = json!({
        "warmup_tries": 1, "num_runs": 12, "min_duration_s": 0.0, "xprof_timing": false,
        "xprof_dir": "/tmp/tensorboard", "system": "", "use_trace_roofline": false, "dtype": "float32",
        "m": 16, "k": 16, "n": 16, "in_dtype": "bfloat16", "out_dtype": "bfloat16", "seed": 0,
        "use_scaling_factors": false, "transpose_a": false, "transpose_b": false, "alpha": 1.0, "beta": 0.0,
        "hardware_stats": {"peak_tflops": 0.5, "hbm_bw": {"1": 10.0, "1000001": 20.0}},
    });
    assert_eq!(of(0, "params"), gemm);
    assert_eq!(
        [0, 1, 2].map(|index| of(index, "benchmark_name")),
        ["GeneralizedGemmBenchmark", "HBMBandwidthBenchmark", "HBMBandwidthBenchmark"]
    );
    assert_eq!((&of(2, "params")["size"], &of(2, "params")["op_type"]), (&512.into(), &"add".into()));
    let times = |result: &Value| result["raw_times_ms"].as_array().unwrap().len();
    assert!(results.iter().all(|result| result["metrics"]["actual_runs"] == times(result)));
    let launches: usize = records.iter().map(|record| record.time.iterations_ns.len()).sum();
    assert_eq!(results.iter().map(times).sum::<usize>(), launches);
    assert_eq!(results[0]["metrics"]["total_flops"], 8192.0);
    let files = || ["detailed.json", "summary.csv"].map(|name| fs::read(scene.path("out").join(name)).unwrap());
    let before = files();
    scene.run("run --resume out").expect_code(0);
    assert!(files() == before, "a resumed run writes the same results");
    let bandwidth = results[1]["metrics"]["peak_bw_at_size_gb_s"].as_f64().unwrap();
    assert!((bandwidth - (10.0 + 10.0 * 3071.0 / 1e6)).abs() < 1e-9, "{bandwidth}");
    let summary = fs::read_to_string(scene.path("out/summary.csv")).unwrap();
    let mut lines = summary.lines();
    assert!(
        lines.next().unwrap().starts_with("warmup_tries,num_runs,min_duration_s,xprof_timing,xprof_dir,"),
        "{summary}"
    );
    assert!(
        lines
            .all(|line| line
                .starts_with("1,12,0.0,False,/tmp/tensorboard,,False,\"{'hbm_bw': {1: 10.0, 1000001: 20.0}, ")),
        "{summary}"
    );
}

#[test]
fn ignored_parameters_are_noted_once_per_file() {
    let config = "global: {system: ironwood}
benchmarks:
- {name: all_gather, mesh_shape: 2x2, sweep: {warmup_tries: [1, 2]}}
- {name: all_gather, mesh_shape: 4x1}
";
    let ended = Scene::with(config).run("run c.yml --device mock --dry-run --format jsonl");
    assert_eq!(ended.expect_code(0).stderr, "note: c.yml: ignored parameters: warmup_tries, system, mesh_shape\n");
}
