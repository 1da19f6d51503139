//! Files of accelerator-microbenchmarks: planned cases, and exported tables.

use crate::scene::{ProgramOutput, Scene, fixture, not_ok};
use calorimeter_sinks::{Record, Status};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const FILES: [&str; 9] = [
    "add",
    "compute_microbenchmark_demo",
    "gemm_demo",
    "gemm_fp8_rowwise",
    "gemm_multiple_run",
    "gemm_simple",
    "hbm",
    "quantization",
    "transpose_quantization",
];

fn run(scene: &Scene, file: &str, options: &str) -> ProgramOutput {
    scene.run(&format!("run {} {options}", fixture(&format!("accelerator/{file}.yaml")).display()))
}

/// Summary of a plan per entry: benchmark, dtypes, number of cases, first and last size.
fn plan_summary(cases: &[Value]) -> Vec<String> {
    let sizes = |case: &Value| {
        let sizes = ["m", "k", "n", "num_elements"].iter().filter_map(|axis| case["shape"].get(axis));
        sizes.map(Value::to_string).collect::<Vec<_>>().join(" ")
    };
    let same = |a: &Value, b: &Value| a["export"]["entry"] == b["export"]["entry"];
    let words = cases.chunk_by(same).map(|cases| {
        let text = |key: &str| cases[0][key].as_str().unwrap_or("-");
        let (first, last) = (sizes(&cases[0]), sizes(&cases[cases.len() - 1]));
        format!("{} {} {} {}: {first} … {last}", text("workload"), text("dtype"), text("output_dtype"), cases.len())
    });
    words.collect()
}

fn planned(config: &str) -> Vec<Value> {
    let options = "--device mock --implementations eager --dry-run --format jsonl";
    Scene::with(config).run(&format!("run c.yml {options}")).expect_code(0).objects()
}

/// Sizes of all cases, in order.
fn swept_sizes(sweep: &str) -> String {
    let config = format!("benchmarks: [{{benchmark_name: add, benchmark_sweep_params: [{sweep}]}}]");
    let sizes: Vec<String> =
        planned(&config).iter().map(|case| format!("{}x{}", case["shape"]["m"], case["shape"]["n"])).collect();
    sizes.join(" ")
}

#[test]
fn files_plan_all_cases_at_full_size() {
    let demo = |name: &str, dtype: &str, sizes: &str| format!("{name} {dtype} - 1: {sizes} … {sizes}");
    let (cube, quantized, rows) = ("16384 18432 16384", "16384 16384", "16384 16384 4096");
    let accum = "16384 16384 18432";
    let expected: [Vec<String>; 9] = [
        vec!["add bf16 - 10: 2048 7168 … 2048 16384".into()],
        vec![
            demo("gemm_multiple_run", "bf16", cube),
            demo("gemm_multiple_run", "e4m3", cube),
            demo("gemm_simple", "e4m3", cube),
            demo("gemm", "e4m3", cube),
            demo("gemm_accum", "e4m3", accum),
            demo("quantization", "bf16", quantized),
            demo("transpose_quantization", "bf16", quantized),
            demo("add", "bf16", "4096 16384"),
            demo("gemm_fp8_rowwise", "bf16", rows),
        ],
        vec![
            demo("gemm_simple", "e4m3", cube),
            demo("gemm", "e4m3", cube),
            demo("gemm_accum", "e4m3", accum),
            demo("quantization", "bf16", quantized),
            demo("transpose_quantization", "bf16", quantized),
            demo("quantization_static_scaling", "bf16", quantized),
            demo("transpose_quantization_static_scaling", "bf16", quantized),
            demo("swiglu_fwd", "bf16", "8192 8192"),
            demo("swiglu_bwd", "bf16", "8192 8192"),
            demo("rmsnorm_fwd", "bf16", "4096 16384"),
            demo("rmsnorm_bwd", "bf16", "4096 16384"),
            demo("add", "bf16", "4096 16384"),
            demo("gemm_fp8_rowwise", "bf16", rows),
            demo("gemm_fp8_b128_fp32", "bf16", rows),
            demo("gemm_fp8_rowwise_static_scaling", "bf16", rows),
            demo("gemm_fp8_b128_fp32_static_scaling", "bf16", rows),
            demo("gemm_mxfp8_b32", "bf16", rows),
            demo("gemm_mxfp8_b32_static_scaling", "bf16", rows),
        ],
        vec!["gemm_fp8_rowwise bf16 - 12: 16384 16384 4096 … 1024 1024 1024".into()],
        ["bf16", "f32", "f16", "e4m3", "e2m1"].map(|dtype| demo("gemm_multiple_run", dtype, cube)).to_vec(),
        vec!["gemm_simple e4m3 - 200: 1024 7168 3584 … 1024 5376 7168".into()],
        vec!["single_device_hbm_copy bf16 - 13: 1048576 … 4294967296".into()],
        vec!["quantization bf16 - 10: 512 4096 … 8192 7168".into()],
        vec!["transpose_quantization bf16 - 10: 512 4096 … 8192 7168".into()],
    ];
    for (file, expected) in FILES.iter().zip(expected) {
        let scene = Scene::new();
        let ended = run(&scene, file, "--device cpu --implementations eager --dry-run --format jsonl");
        let cases = ended.expect_code(0).objects();
        assert_eq!(plan_summary(&cases), expected, "{file}");
        let note = format!("{file}.yaml: ignored keys: xla_dump_dir\n");
        assert!(ended.stderr.starts_with("note: ") && ended.stderr.ends_with(&note), "{ended:?}");
        for case in &cases {
            // Only e2m1 is known in advance to be unsupported.
            assert_eq!(case["status"] == "unsupported", case["dtype"] == "e2m1", "{case}");
            let (flops, bytes) = (case["published"]["flops"].as_u64(), case["published"]["bytes"].as_u64());
            let never_ran = ["b128", "mxfp8"].iter().any(|part| case["workload"].as_str().unwrap().contains(part));
            assert!(never_ran || flops.or(bytes) > Some(0), "{case}");
            assert!(case["profiler"] == true && case["regime"] == "device-cold" && case["implementation"] == "eager");
        }
    }
}

#[test]
fn sweeps_expand_with_the_last_key_fastest() {
    for (sweep, expected) in [
        ("{m: 2, n: 3}", "2x3"),
        ("{m: 2, n: 3}, {m: 2, n: 3}", "2x3 2x3"),
        ("{m: [4, 2], n: [1, 3]}", "4x1 4x3 2x1 2x3"),
        ("{n_list: [1, 3], m_list: [4, 2]}", "4x1 2x1 4x3 2x3"),
        ("{m_range: {start: 1, end: 8, multiplier: 2}, n: 5}", "1x5 2x5 4x5 8x5"),
        ("{m_range: {start: 3, end: 20, multiplier: 3}, n: 5}", "3x5 9x5"),
        ("{m_range: {start: 1, end: 7, increase_by: 3}, n: 5}", "1x5 4x5 7x5"),
        ("{m: {start: 2, end: 9, multiplier: 2, increase_by: 1}, n: 5}", "2x5 4x5 8x5"),
        ("{m: {start: 2, end: 4, multiplier: 0, increase_by: 1}, n: 5}", "2x5 3x5 4x5"),
        ("{m_range: 6, n_list: 7}", "6x7"),
        ("{m_range: [6, 7], n_list: {start: 1, end: 1, multiplier: 2}}", "6x1 7x1"),
        ("{m_list_range: [6, 7], n: 1}", "6x1 7x1"),
        ("{m: [2, 3], n: SAME_AS_m}", "2x2 3x3"),
        ("{n: SAME_AS_m, m: [2, 3]}", "2x2 3x3"),
    ] {
        assert_eq!(swept_sizes(sweep), expected, "{sweep}");
    }
    let both = "benchmarks: [{benchmark_name: add, benchmark_sweep_params: [{m: [1, 2], n: 1}], benchmark_params: [{m: 9, n: 9}]}]";
    assert_eq!(plan_summary(&planned(both)), ["add bf16 - 3: 9 9 … 2 1"]);
}

#[test]
fn dtypes_parse_in_all_spellings() {
    let config = "benchmarks:
- {benchmark_name: gemm_multiple_run, benchmark_sweep_params: [{m: 8, k: 8, n: 8, dtype: [bfloat16, float32, int32, float8, float16, float4]}]}
- {benchmark_name: gemm_simple_with_dtype, benchmark_sweep_params: [{m: 8, k: 8, n: 8, in_dtype_str: [fp8, bf16], out_dtype_str: [fp16, fp32]}]}
- {benchmark_name: quantization, benchmark_params: [{m: 8, n: 8, quant_dtype: float8_e4m3fn}, {m: 8, n: 8, quant_dtype: float4_e2m1fn}]}
- {benchmark_name: gemm_throttling, benchmark_params: [{m: 8, k: 8, n: 8}]}
";
    let cases = planned(config);
    let types: Vec<String> = cases
        .iter()
        .map(|case| [&case["dtype"], &case["output_dtype"]].map(|t| t.as_str().unwrap_or("-")).join(" "))
        .collect();
    let expected =
        "bf16 -,f32 -,i32 -,e4m3 -,f16 -,e2m1 -,e4m3 f16,e4m3 f32,bf16 f16,bf16 f32,bf16 e4m3,bf16 e2m1,e4m3 -";
    assert_eq!(types.join(","), expected);
    let unsupported: Vec<&Value> = cases.iter().filter(|case| case["status"] == "unsupported").collect();
    assert!(unsupported.len() == 1 && unsupported[0]["dtype"] == "i32", "{unsupported:?}");
}

#[test]
fn invalid_files_are_refused_with_position() {
    let sweep = |sweep: &str| format!("benchmarks:\n- benchmark_name: add\n  benchmark_sweep_params:\n  - {sweep}\n");
    for (config, expected) in [
        (
            sweep("{m_range: {start: 1, end: 8, multiplier: 1}, n: 4}"),
            ":4:15: benchmarks[0].benchmark_sweep_params[0].m_range: a range from 1 with multiplier 1 never grows: multiply by 2 or more",
        ),
        (
            sweep("{m_range: {start: 0, end: 8, multiplier: 2}, n: 4}"),
            ":4:15: benchmarks[0].benchmark_sweep_params[0].m_range: a range from 0 with multiplier 2 never grows: start at 1 or more, or use increase_by",
        ),
        (
            sweep("{m_range: {start: 1, end: 8}, n: 4}"),
            ":4:15: benchmarks[0].benchmark_sweep_params[0].m_range: a range requires multiplier or increase_by",
        ),
        (
            sweep("{m_range: {start: 8, end: 1, multiplier: 2}, n: 4}"),
            ":4:15: benchmarks[0].benchmark_sweep_params[0].m_range: a range from start 8 to end 1 is empty: end must not be below start",
        ),
        (
            sweep("{m_list: [], n: 4}"),
            ":4:14: benchmarks[0].benchmark_sweep_params[0].m_list: empty list; add a value or omit the key",
        ),
        (
            sweep("{m: -1, n: 4}"),
            ":4:9: benchmarks[0].benchmark_sweep_params[0].m: expected one value, a list of them, or a range such as {start: 1, end: 64, multiplier: 2}, found -1",
        ),
        (
            sweep("{m: 4, n: SAME_AS_k}"),
            ":4:5: benchmarks[0].benchmark_sweep_params[0]: n: SAME_AS_k refers to an unknown parameter \"k\"; known: m, n",
        ),
        (
            sweep("{m: 4, m_list: [5], n: 1}"),
            ":4:5: benchmarks[0].benchmark_sweep_params[0]: duplicate parameter m, possibly with different suffixes; keep one",
        ),
        (sweep("{m: 4}"), ": benchmarks[0]: add: invalid axes m: expected m, n"),
        (sweep("{m: 4, n: '8'}"), ":2:3: benchmarks[0]: invalid n \"8\": expected an integer from 1"),
        (sweep("{m: 0, n: 8}"), ": benchmarks[0]: add: invalid m 0: expected at least 1"),
        (
            sweep("{m: 9223372036854775807, n: 1}"),
            ":2:3: benchmarks[0]: add at m9223372036854775807-n1 is too large; expected at most 2^56 elements",
        ),
        (
            sweep("{m: {start: 1, end: 2000, increase_by: 1}, n: {start: 1, end: 2000, increase_by: 1}}"),
            ":4:5: benchmarks[0].benchmark_sweep_params[0]: 4000000 combinations, more than 1000000; use fewer values (m has 2000, n has 2000)",
        ),
        ("benchmarks: []".into(), ":1:13: nothing to run: benchmarks is empty"),
        (
            "benchmarks: [{benchmark_name: add, num_runs: 9000000000, benchmark_params: [{m: 8, n: 8}]}]".into(),
            ":1:14: benchmarks[0]: invalid num_runs 9000000000: expected at most 100000",
        ),
        (
            "benchmarks: [{benchmark_name: add}]".into(),
            ":1:14: benchmarks[0]: nothing to run: benchmark_params and benchmark_sweep_params are empty",
        ),
        ("benchmarks: [{csv_path: a}]".into(), ":1:14: benchmarks[0]: missing benchmark_name"),
        (
            "benchmarks: [{csv_path: a, csv_path: b}]".into(),
            ":1:14: benchmarks[0]: duplicate key \"csv_path\"; keep one",
        ),
        (
            "benchmarks: [{benchmark_name: add, benchmark_params: [{m: [1, 2], n: 1}]}]".into(),
            ":1:59: benchmarks[0].benchmark_params[0].m: expected one value, an integer from 0 or a word, found a list",
        ),
    ] {
        let ended = Scene::with(&config).run("run c.yml --dry-run");
        assert_eq!(ended.error(), format!("c.yml{expected}"), "{config}");
    }
    for (config, parts) in [
        (
            "benchmarks: [{benchmark_name: gem_simple}]",
            [
                "c.yml:1:31: benchmarks[0].benchmark_name: unknown operator \"gem_simple\"; did you mean \"gemm_simple\"?",
                "gemm_simple_with_dtype and ",
            ],
        ),
        (
            "benchmarks: [{benchmark_name: add, benchmark_params: [{m: 1, n: 1, dtype: bfloat61}]}]",
            [
                "benchmarks[0].benchmark_params[0]: dtype: unknown dtype \"bfloat61\"; did you mean \"bfloat16\"?",
                "; known: bfloat16, float16, ",
            ],
        ),
    ] {
        let ended = Scene::with(config).run("run c.yml --dry-run");
        assert!(parts.iter().all(|part| ended.error().contains(part)), "{ended:?}");
    }
}

#[test]
fn ignored_keys_are_noted_once_per_file() {
    let config = "topology: 2x2
benchmarks:
- {benchmark_name: gemm_throttling, warmup_tries: 3, topology: 2x2x1, color: red, benchmark_params: [{m: 1, k: 1, n: 1, gap_strategy: none}]}
- {benchmark_name: add, warmup_tries: 3, num_runs: 100, benchmark_params: [{m: 1, n: 1}, {m: 2, n: 1, num_runs: 7}]}
";
    let scene = Scene::with(config);
    let notes = "note: c.yml: ignored keys: warmup_tries, topology
note: c.yml: unknown keys: topology, color
note: c.yml: ignored parameters: gap_strategy of gemm_throttling
";
    assert_eq!(scene.run("run c.yml --device mock --dry-run --format jsonl").expect_code(0).stderr, notes);
    assert!(scene.run("run c.yml --device mock --out out").expect_code(0).stderr.starts_with(notes));
    let summary = scene.journal("out").summary.unwrap();
    assert_eq!(summary.notes.len(), 3);
    // The number of runs raises the minimum number of windows if it is larger.
    let header = scene.journal("out").header;
    let entries = header.config["resolved"].as_array().unwrap();
    let least: Vec<&Value> = entries.iter().map(|entry| &entry["timing"]["min_windows"]).collect();
    assert_eq!(least, [30, 100, 30]);
}

#[test]
fn tpu_benchmarks_are_recorded_as_unsupported() {
    let config = "benchmarks:
- {benchmark_name: psum, benchmark_sweep_params: [{matrix_dim_range: {start: 8, end: 64, multiplier: 2}, dtype: float32, mesh_shape: 2x2x2, ici_size_range: 8, sharding_strategy: 2x2x1, op_dimension: 1, num_runs: 5}], csv_path: tables, xlml_metrics_dir: tables}
- {benchmark_name: send_recv, benchmark_sweep_params: [{source_id: 0, target_id_list: [2, 3], num_elements: 8, n_repeats: 10, dtype: float32}]}
- {benchmark_name: host_device, num_runs: 20, benchmark_sweep_params: [{data_size_mib_list: [1, 16], h2d_type: [simple, pipelined]}]}
- {benchmark_name: tokamax_splash_attention, benchmark_sweep_params: [{batch_size: 1, q_seq_len: 4096, kv_seq_len: 4096, q_heads: 8, kv_heads: 8, qk_head_dim: 64, v_head_dim: 64, mode: [fwd, bwd], causal: [true, false]}]}
";
    let names = ["all_gather", "psum_scatter", "all_to_all", "all_reduce"];
    let more = names
        .map(|name| format!("- {{benchmark_name: {name}, benchmark_params: [{{matrix_dim: 8, dtype: bfloat16}}]}}\n"));
    let scene = Scene::with(&(config.to_owned() + &more.concat()));
    let records = scene.run("run c.yml --device cpu --out out --format jsonl").expect_code(0).records();
    assert_eq!(records.len(), 4 + 2 + 4 + 4 + 4);
    for record in &records {
        assert_eq!(record.outcome.status, Status::Unsupported, "{record:?}");
        assert!(record.outcome.reason.as_ref().unwrap().starts_with(record.case.workload.as_str()), "{record:?}");
    }
    let of = |end: &str| &records.iter().find(|record| record.case.id.ends_with(end)).unwrap().case;
    let (between, copied) = (of("/psum/baseline/eager/cpu/f32/matrix_dim8-devices2"), of("/data_size_mib1"));
    // Two devices, since no more are available here: 8 x 8 x 128 elements of 4 bytes; each link carries one half twice.
    assert_eq!((between.shape.get("devices"), between.bytes), (Some(2), Some(8 * 8 * 128 * 4)));
    assert_eq!(copied.bytes, Some(2 << 20));
    let elsewhere = records.iter().find(|record| record.case.workload == "tokamax_splash_attention").unwrap();
    assert_eq!((elsewhere.case.flops, elsewhere.case.bytes, elsewhere.case.memory_bytes), (None, None, None));
    assert!(!scene.path("out/tables").exists(), "an empty run exports no table");
    let planned = scene.run("run c.yml --device cuda --regimes graph --dry-run --format jsonl");
    let why = "graph: psum uses several streams, and only one can be captured";
    assert!(planned.expect_code(0).stdout.contains(why), "{planned:?}");
}

/// Tables in a folder: names without the ten random characters, and contents.
fn table_files(dir: PathBuf) -> Vec<(String, String)> {
    let mut tables: Vec<(String, String)> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "tsv"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let (name, token) = name.rsplit_once('_').unwrap();
            assert!(
                token.len() == 10 && token.bytes().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit()),
                "{token}"
            );
            (name.to_owned(), fs::read_to_string(path).unwrap())
        })
        .collect();
    tables.sort();
    tables
}

/// Column names of the eight statistics of each metric.
fn statistics(metrics: &[&str]) -> String {
    let names = ["p50", "p90", "p95", "p99", "avg", "max", "num_runs", "min"];
    metrics.iter().flat_map(|metric| names.map(|name| format!("\t{metric}_{name}"))).collect()
}

#[test]
fn exported_tables_have_peer_columns_then_ours() {
    let config = "benchmarks:
- {benchmark_name: gemm, csv_path: ../t, benchmark_params: [{m: 64, k: 32, n: 16}]}
- {benchmark_name: gemm_multiple_run, csv_path: ../t, xlml_metrics_dir: ../t, benchmark_params: [{m: 64, k: 32, n: 16, dtype: bfloat16}]}
- {benchmark_name: gemm_simple_with_dtype, csv_path: t, benchmark_params: [{m: 64, k: 32, n: 16, in_dtype_str: fp8, out_dtype_str: fp32}]}
- {benchmark_name: quantization, csv_path: t/, benchmark_params: [{m: 64, n: 16}]}
- {benchmark_name: add, csv_path: t, benchmark_sweep_params: [{m: 64, n: [16, 32]}]}
- {benchmark_name: inference_sigmoid, csv_path: t, benchmark_params: [{m: 64, n: 16, dtype: float32}]}
- {benchmark_name: single_device_hbm_copy, csv_path: t, benchmark_params: [{num_elements: 1000, dtype: bfloat16}]}
- {benchmark_name: rmsnorm_fwd, benchmark_params: [{m: 64, n: 16}]}
";
    let scene = Scene::with(config);
    scene.run("run c.yml --device mock --implementations eager,fused --out out").expect_code(0);
    let products =
        "StepTime(median,ms)\tThroughput(median,TFLOP/s/device)\tTotalThroughput(median,TFLOP/s)\tMFU\ttotal_flops";
    let bytes =
        "StepTime(median,ms)\tThroughput(median,GBytes/s/device)\tTotalThroughput(median,GBytes/s)\ttotal_bytes";
    let test = "testsuite\ttest_name\ttest_start_timestamp\ttest_end_timestamp";
    let flops = ["step_time_ms", "tflops_per_sec_pre_device", "tflops_per_sec", "MFU"];
    let rates = ["step_time_ms", "Gbytes_per_sec_per_device", "Gbytes_per_sec"];
    let copies = ["time_ms", "bw_gbyte_sec"];
    let end = |metrics: &[&str]| {
        let newer: String = metrics.iter().map(|metric| format!("\t{metric}_p10")).collect();
        format!("{}{newer}\timplementation\tdevice\tregime", statistics(metrics))
    };
    let expected = [
        ("t_add", format!("m\tn\t{bytes}{}", end(&rates)), 4),
        ("t_gemm", format!("m\tn\tk\t{products}{}", end(&flops)), 2),
        ("t_gemm_multiple_run", format!("m\tn\tk\tdtype\t{products}\t{test}{}", end(&flops)), 2),
        ("t_gemm_simple_with_dtype", format!("m\tn\tk\t{products}\tin_dtype\tout_dtype{}", end(&flops)), 2),
        ("t_inference_sigmoid", format!("m\tn\tdtype\t{bytes}{}", end(&rates)), 2),
        ("t_quantization", format!("m\tn\tquant_dtype\t{bytes}{}", end(&rates)), 2),
        ("t_single_device_hbm_copy", format!("num_elements\tdtype\ttensor_size_gbytes{}", end(&copies)), 2),
    ];
    let tables = table_files(scene.path("out/t"));
    assert_eq!(tables.len(), expected.len());
    for ((name, content), (expected, header, rows)) in tables.iter().zip(&expected) {
        let lines: Vec<&str> = content.lines().collect();
        assert_eq!((name.as_str(), lines[0], lines.len() - 1), (*expected, header.as_str(), *rows));
        assert!(content.ends_with("\tfused\tmock\tdevice-cold\n"), "{content}");
    }
    // One table in full.
    let gemm = "m\tn\tk\tStepTime(median,ms)\tThroughput(median,TFLOP/s/device)\tTotalThroughput(median,TFLOP/s)\tMFU\ttotal_flops\tstep_time_ms_p50\tstep_time_ms_p90\tstep_time_ms_p95\tstep_time_ms_p99\tstep_time_ms_avg\tstep_time_ms_max\tstep_time_ms_num_runs\tstep_time_ms_min\ttflops_per_sec_pre_device_p50\ttflops_per_sec_pre_device_p90\ttflops_per_sec_pre_device_p95\ttflops_per_sec_pre_device_p99\ttflops_per_sec_pre_device_avg\ttflops_per_sec_pre_device_max\ttflops_per_sec_pre_device_num_runs\ttflops_per_sec_pre_device_min\ttflops_per_sec_p50\ttflops_per_sec_p90\ttflops_per_sec_p95\ttflops_per_sec_p99\ttflops_per_sec_avg\ttflops_per_sec_max\ttflops_per_sec_num_runs\ttflops_per_sec_min\tMFU_p50\tMFU_p90\tMFU_p95\tMFU_p99\tMFU_avg\tMFU_max\tMFU_num_runs\tMFU_min\tstep_time_ms_p10\ttflops_per_sec_pre_device_p10\ttflops_per_sec_p10\tMFU_p10\timplementation\tdevice\tregime";
    assert_eq!(expected[1].1, gemm);
    // A launch on the mock device takes 10 µs, and its peaks are unknown. Numbers are formatted as in Python.
    let row = |name: &str, row: usize| {
        tables.iter().find(|(table, _)| table == name).unwrap().1.lines().nth(row).unwrap().to_owned()
    };
    let rate = |rate: &str| [rate, rate, rate, rate, rate, rate, "100", rate].join("\t");
    let add = |n: &str, speed: &str, total: &str, implementation: &str| {
        let (time, each) = (rate("0.01"), rate(speed));
        format!(
            "64\t{n}\t0.01\t{speed}\t{speed}\t{total}\t{time}\t{each}\t{each}\t0.01\t{speed}\t{speed}\t{implementation}\tmock\tdevice-cold"
        )
    };
    assert_eq!(row("t_add", 1), add("16", "0.6144", "6144", "eager"));
    assert_eq!(row("t_add", 2), add("16", "0.6144", "6144", "fused"));
    assert_eq!(row("t_add", 3), add("32", "1.2288", "12288", "eager"));
    assert!(
        row("t_gemm", 1).starts_with("64\t16\t32\t0.01\t0.006553599999999999\t0.006553599999999999\t\t65536\t"),
        "{}",
        row("t_gemm", 1)
    );
    assert!(row("t_gemm_multiple_run", 1).starts_with("64\t16\t32\tbfloat16\t0.01\t"));
    assert!(row("t_gemm_simple_with_dtype", 1).contains("\t\t64512\tfp8\tfp32\t0.01\t"));
    assert!(row("t_quantization", 1).starts_with("64\t16\tfloat8_e4m3fn\t0.01\t"));
    assert!(
        row("t_inference_sigmoid", 1)
            .starts_with("64\t16\tfloat32\t0.01\t0.20479999999999998\t0.20479999999999998\t2048\t")
    );
    assert!(row("t_single_device_hbm_copy", 1).starts_with("1000\t2\t4e-06\t0.01\t"));
    assert!(!scene.path("out/gemm").exists(), "the CSV of torchao is for its models");
}

#[test]
fn metrics_lines_are_appended_once_per_run() {
    let config = "benchmarks:
- {benchmark_name: gemm_simple, csv_path: t/tables, xlml_metrics_dir: t/lines, benchmark_sweep_params: [{m: [16, 32], k: 32, n: 16}]}
- {benchmark_name: add, xlml_metrics_dir: t/lines, benchmark_params: [{m: 64, n: 16}]}
";
    let scene = Scene::with(config);
    let lines = || -> Vec<String> {
        let text = fs::read_to_string(scene.path("t/lines/metrics_report.jsonl")).unwrap();
        text.lines().map(str::to_owned).collect()
    };
    fs::create_dir_all(scene.path("t/lines")).unwrap();
    scene.write("t/lines/metrics_report.jsonl", "{\"metrics\": {}, \"dimensions\": {\"of\": \"somebody else\"}}");
    scene.run("run c.yml --device mock --implementations eager").expect_code(0);
    assert_eq!(lines().len(), 1 + 3);
    let first = lines();
    // A resumed run rewrites its tables instead of appending to them.
    let dir = fs::read_dir(scene.path("results")).unwrap().next().unwrap().unwrap().path();
    scene.run(&format!("run --resume results/{}", dir.file_name().unwrap().to_str().unwrap())).expect_code(0);
    assert_eq!(lines(), first);
    assert_eq!(table_files(scene.path("t/tables")).len(), 1);
    scene.run("run c.yml --device mock --implementations eager").expect_code(0);
    assert_eq!(lines().len(), 1 + 3 + 3);
    assert_eq!(table_files(scene.path("t/tables")).len(), 2);
    // An oversized line was written by another program: the file stays unchanged.
    let endless = "x".repeat(17 << 20);
    scene.write("t/lines/metrics_report.jsonl", &endless);
    let refused = scene.run("run c.yml --device mock --implementations eager");
    let why = "cannot read t/lines/metrics_report.jsonl: exceeds 16 MiB, the size limit of a line of";
    assert!(refused.expect_code(2).stderr.contains(why), "{refused:?}");
    assert!(fs::read_to_string(scene.path("t/lines/metrics_report.jsonl")).unwrap() == endless);
    let reports: Vec<Value> = first.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    for report in &reports[1..] {
        let (metrics, dimensions) = (report["metrics"].as_object().unwrap(), report["dimensions"].as_object().unwrap());
        assert!(metrics.values().all(Value::is_number) && dimensions.values().all(Value::is_string), "{report}");
        assert_eq!((&metrics["step_time_ms_p50"], &metrics["step_time_ms_num_runs"]), (&0.01.into(), &100.into()));
        assert_eq!(dimensions["testsuite"], "microbenchmark");
        for time in ["test_start_timestamp", "test_end_timestamp"] {
            assert!(dimensions[time].as_str().unwrap().ends_with("+00:00Z"), "{report}");
        }
    }
    assert_eq!((&reports[1]["dimensions"]["m"], &reports[2]["dimensions"]["m"]), (&"16".into(), &"32".into()));
    assert_eq!(reports[3]["dimensions"]["test_name"], "add");
    assert_eq!(reports[3]["metrics"]["Gbytes_per_sec_per_device_p50"], 0.6144);
    assert!(reports[1]["metrics"].get("MFU_p50").is_none(), "nothing is known of the mock device's peaks");
}

#[test]
fn exported_tables_contain_single_launch_times() {
    let sweep = "benchmark_params: [{m: 64, n: 16}]";
    let config = format!(
        "benchmarks: [{{benchmark_name: add, csv_path: t, num_runs: 150, {sweep}}}, {{benchmark_name: add, {sweep}}}]"
    );
    let scene = Scene::with(&config);
    scene.run("run c.yml --device mock --implementations eager --out out").expect_code(0);
    let records = scene.journal("out").records;
    let has_table = |record: &&Record| record.case.export.as_ref().is_some_and(|export| export.csv_path.is_some());
    let (tabled, other): (Vec<_>, Vec<_>) = records.iter().partition(has_table);
    assert!(tabled[0].time.windows.iter().all(|window| window.launches > 1), "{:?}", tabled[0]);
    assert_eq!((&tabled[0].time.iterations_ns, other[0].time.iterations_ns.len()), (&vec![10_000; 150], 0));
    let table = &table_files(scene.path("out/t"))[0].1;
    let cell = |row: usize| {
        let column =
            table.lines().next().unwrap().split('\t').position(|name| name == "step_time_ms_num_runs").unwrap();
        table.lines().nth(row).unwrap().split('\t').nth(column).unwrap()
    };
    assert_eq!(cell(1), "150");
}

#[test]
fn suites_export_the_same_files() {
    let scene = Scene::with("# device: cpu");
    let sizes = "--axis m=16 --axis n=16 --axis elements=64 --axis data_size_mib=1";
    let options = format!("--ops add,stream_add,host_device {sizes} --implementations eager --max-time 1ms");
    let command = format!("gemm {options} --device cpu --export t --out out --format jsonl");
    let records = scene.run(&command).expect_code(0).records();
    let ended: Vec<(Status, bool)> =
        records.iter().map(|record| (record.outcome.status, record.time.iterations_ns.is_empty())).collect();
    assert_eq!(ended, [(Status::Ok, false), (Status::Ok, false), (Status::Unsupported, true)]);
    let written = table_files(scene.path("out/t"));
    let names: Vec<&str> = written.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["t_add", "t_stream_add"]);
    let report = fs::read_to_string(scene.path("out/t/metrics_report.jsonl")).unwrap();
    for (line, record) in report.lines().zip(&records) {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["dimensions"]["test_name"], record.case.workload.as_str());
        assert_eq!(line["metrics"]["step_time_ms_num_runs"], record.time.iterations_ns.len());
    }
    assert_eq!(report.lines().count(), 2);
    scene.run("gemm --resume out").expect_code(0);
    assert_eq!(table_files(scene.path("out/t")), written);
    let other = scene.run("gemm --resume out --export elsewhere");
    assert!(other.error().contains("fingerprint"), "{other:?}");
}

#[test]
fn gemm_suite_includes_quantization_and_elementwise_operators() {
    let planned = |suite: &str| -> Vec<String> {
        let cases =
            Scene::new().run(&format!("{suite} --device cpu --dry-run --format jsonl")).expect_code(0).objects();
        cases.iter().map(|case| case["workload"].as_str().unwrap().to_owned()).collect()
    };
    let (gemm, ops) = (planned("gemm"), planned("ops"));
    let streams = ["stream_copy", "stream_scale", "stream_add", "stream_triad"];
    let copies = ["host_device", "host_to_device", "device_to_host"];
    let exchanges = ["psum", "psum_scatter", "all_gather", "all_reduce", "all_to_all", "reduce_scatter", "send_recv"];
    for name in streams.iter().chain(&copies).chain(&exchanges) {
        assert!(gemm.iter().any(|planned| planned == name) && ops.iter().all(|planned| planned != name), "{name}");
    }
    for name in ["gemm", "attention", "single_device_hbm_copy"] {
        assert!(gemm.iter().any(|planned| planned == name), "{name}");
    }
    assert!(gemm.iter().all(|planned| planned != "matmul" && planned != "tokamax_splash_attention"));
}

#[test]
fn non_size_axes_are_not_scaled() {
    let scene = Scene::new();
    for (command, axis, size) in [
        ("fusion --ops conv2d_relu", "kernel", 3),
        ("gemm --ops psum", "devices", 2),
        ("gemm --ops psum", "matrix_dim", 1),
    ] {
        let planned = scene.run(&format!("{command} --device mock --dry-run --format jsonl --scale-shapes 1/64"));
        for case in planned.expect_code(0).objects() {
            assert_eq!((&case["shape"][axis], &case["status"]), (&size.into(), &Value::Null), "{case}");
        }
    }
}

#[test]
fn scale_factor_must_match_on_resume() {
    let scene =
        Scene::with("recipes: [baseline]\ndevice: mock\nmodels: {shapes: [{name: custom, shapes: [[16384, 100, 1]]}]}");
    let cases = scene.run("run c.yml --dry-run --format jsonl --scale-shapes 1/64").expect_code(0).objects();
    assert_eq!(cases[0]["shape"], serde_json::json!({"m": 256, "k": 2, "n": 1}));
    assert_eq!(cases[0]["shape_name"], "custom scaled");
    scene.run("run c.yml --out out --scale-shapes 1/64").expect_code(0);
    scene.run("run --resume out").expect_code(0);
    assert_eq!(scene.journal("out").records[0].case.shape.get("m"), Some(256));
    let other = scene.run("run c.yml --resume out --scale-shapes 1/32");
    assert!(other.error().contains("fingerprint"), "{other:?}");
    let wrong = scene.run("run c.yml --scale-shapes 2");
    assert!(wrong.code == Some(2) && wrong.stderr.contains("invalid factor"), "{wrong:?}");
}

#[test]
fn files_run_on_the_cpu_when_scaled() {
    for (file, scale, filter, ok) in [
        ("add", "1/1024", "m2-n7$", 2),
        ("compute_microbenchmark_demo", "1/1024", "multiple_run/.*bf16|/quant|/add", 4),
        ("gemm_demo", "1/1024", ".", 16),
        ("gemm_fp8_rowwise", "1/1024", "m16-k16-n4$", 1),
        ("gemm_multiple_run", "1/1024", ".", 4),
        ("gemm_simple", "1/4096", "m4-k[12]-n4", 4),
        ("hbm", "1/1048576", "elements[124]$", 3),
        ("quantization", "1/1024", "m16-n16$", 1),
        ("transpose_quantization", "1/1024", "m8-n16$", 1),
    ] {
        let scene = Scene::with("# device: cpu");
        let options =
            format!("--device cpu --scale-shapes {scale} --max-time 1ms --filter {filter} --out out --format jsonl");
        let ended = run(&scene, file, &options);
        let records = ended.expect_code(0).records();
        assert!(not_ok(&records).iter().all(|record| record.outcome.status == Status::Unsupported), "{ended:?}");
        assert_eq!(
            records.iter().filter(|record| record.outcome.status == Status::Ok).count(),
            ok,
            "{file}: {ended:?}"
        );
        for record in records.iter().filter(|record| record.outcome.status == Status::Ok) {
            let export = record.case.export.as_ref().unwrap();
            let folder = PathBuf::from(export.csv_path.as_ref().unwrap());
            let folder = scene.path("out").join(folder.file_name().unwrap());
            assert!(table_files(folder).iter().any(|(name, _)| *name == format!("t_{}", record.case.workload)));
        }
    }
}
