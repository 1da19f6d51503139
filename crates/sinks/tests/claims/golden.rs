//! Files of formats that others read: `fixtures/golden.py` writes the golden ones.

use crate::samples::run;
use calorimeter_case::Case;
use calorimeter_sinks::record::{Estimate, Footprint, Outcome, Record, Status, Time};
use calorimeter_sinks::{dashboard, torchao, write_all};
use std::fs;
use std::path::Path;

/// The records of which `fixtures/golden.py` writes the golden files.
fn torchao_records() -> Vec<Record> {
    let case = |recipe: &str, implementation: &str| Case {
        id: format!("{recipe}/{implementation}").into(),
        mode: "inference".parse().unwrap(),
        name: "the \"small\" one".into(),
        workload: "linear".into(),
        recipe: recipe.parse().unwrap(),
        implementation: implementation.parse().unwrap(),
        device: "cuda:0".parse().unwrap(),
        element: "bf16".parse().unwrap(),
        shape_name: "custom".into(),
        shape: [("m", 1024), ("k", 512), ("n", 256)].into(),
        regime: "device-hot".parse().unwrap(),
        compile_mode: Some("max-autotune".into()),
        memory_profiler: true,
        ..Case::default()
    };
    let ok = |case: Case, median: f64| Record {
        time: Time { time_ns: Some(Estimate { median, lo: None, hi: None }), ..Time::default() },
        ..Record::new(case, Status::Ok)
    };
    let implied = |case: Case| Case { implied: true, ..case };
    let plain = |implementation: &str| Case {
        name: "plain".into(),
        device: "cpu".parse().unwrap(),
        element: "f32".parse().unwrap(),
        shape: [("m", 1), ("k", 2), ("n", 3)].into(),
        compile_mode: None,
        profiler: true,
        memory_profiler: false,
        ..case("baseline", implementation)
    };
    let sparse = Case { sparsity: Some("semi-sparse".into()), ..case("int8dq", "native") };
    let other_axes = Case { shape: [("batch", 4), ("seq", 16)].into(), ..case("int8wo", "eager") };
    vec![
        ok(implied(case("baseline", "eager")), 12_345.0),
        ok(implied(case("baseline", "fused")), 9_000.0),
        ok(case("int8wo", "eager"), 10_000.5),
        ok(case("int8wo", "fused"), 6_000.0),
        Record {
            footprint: Footprint { peak_bytes: Some(123_456_789), ..ok(case("int8wo", "native"), 5_200.0).footprint },
            ..ok(case("int8wo", "native"), 5_200.0)
        },
        // Faster than all, and wrong.
        Record {
            outcome: Outcome { status: Status::Mismatch, ..ok(case("int8wo", "cube"), 1.0).outcome },
            ..ok(case("int8wo", "cube"), 1.0)
        },
        ok(case("int4wo-32", "eager"), 50.0),
        Record::new(case("int4wo-32", "native"), Status::Failed),
        Record::new(sparse, Status::Unsupported),
        ok(plain("eager"), 2e6),
        ok(plain("fused"), 1e6),
        ok(other_axes, 1.0),
    ]
}

#[test]
fn the_torchao_csv_is_what_python_would_have_written() {
    let golden = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/torchao.csv")).unwrap();
    let csv = torchao::to_csv(&torchao_records(), Path::new("out, put")).unwrap();
    assert_eq!(String::from_utf8(csv).unwrap(), String::from_utf8(golden).unwrap());
}

#[test]
fn the_torchao_sink_writes_one_file_per_mode_named_by_the_local_start() {
    let dir = tempfile::tempdir().unwrap();
    let mut records = torchao_records();
    records[9].case.mode = "training".parse().unwrap();
    records[9].case.workload = "linear_forward".into();
    let written = write_all(&run(dir.path(), records));
    let file = |mode: &str| dir.path().join("out").join(mode).join("results_09032026_070501.csv");
    let index = dir.path().join("index.html");
    assert_eq!(written.paths[written.paths.len() - 3..], [file("inference"), file("training"), index]);
    let lines = |path| fs::read_to_string(path).unwrap().lines().count();
    assert_eq!((lines(file("inference")), lines(file("training"))), (5, 2));
}

#[test]
fn rows_never_mix_two_regimes() {
    let mut records = torchao_records();
    let cold: Vec<Record> = records[..5]
        .iter()
        .cloned()
        .map(|mut record| {
            record.case.regime = "device-cold".parse().unwrap();
            record.time.time_ns = record.time.time_ns.map(|time| Estimate { median: time.median * 2.0, ..time });
            record
        })
        .collect();
    records.extend(cold);
    let csv = String::from_utf8(torchao::to_csv(&records, Path::new("o")).unwrap()).unwrap();
    let int8wo: Vec<&str> = csv.lines().filter(|line| line.contains(",int8wo,")).collect();
    assert_eq!(int8wo.len(), 2);
    assert!(int8wo[0].contains(",0.012345,0.0100005,0.009,0.0052,1.23,1.73,1.92,"), "{}", int8wo[0]);
    assert!(int8wo[1].contains(",0.02469,0.020001,0.018,0.0104,1.23,1.73,1.92,"), "{}", int8wo[1]);
}

#[test]
fn the_dashboard_json_is_what_python_would_have_written() {
    let golden = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/dashboard.json")).unwrap();
    // The same number.
    let golden = golden.replace("5e-05", "0.00005");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("benchmark_results.json");
    dashboard::write(&path, &torchao_records(), "NVIDIA H200").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), golden);
    assert_eq!(dashboard::to_json(&[], "x").unwrap(), "[]");
}

#[test]
fn no_two_entries_of_the_dashboard_are_of_the_same_name() {
    let plain = torchao_records().swap_remove(2);
    let with = |change: &dyn Fn(&mut Case)| {
        let mut record = plain.clone();
        change(&mut record.case);
        record
    };
    let records = vec![
        plain.clone(),
        with(&|case| case.regime = "graph".parse().unwrap()),
        with(&|case| case.workload = "ln_linear_relu".into()),
        with(&|case| case.sparsity = Some("semi-sparse".into())),
        with(&|case| case.shape_name = "again".into()),
        with(&|case| case.name = "another".into()),
    ];
    // Each is a baseline beside itself, so that it has entries.
    let records: Vec<Record> = records
        .into_iter()
        .flat_map(|record| {
            let baseline = Case { recipe: "baseline".into(), sparsity: None, implied: true, ..record.case.clone() };
            [Record { case: baseline, ..record.clone() }, record]
        })
        .collect();
    let entries: Vec<serde_json::Value> = serde_json::from_str(&dashboard::to_json(&records, "x").unwrap()).unwrap();
    let name = |entry: &serde_json::Value| format!("{} {}", entry["model"]["name"], entry["metric"]["name"]);
    let names: std::collections::BTreeSet<String> = entries.iter().map(name).collect();
    assert_eq!((names.len(), entries.len()), (6 * 3, 6 * 3), "{names:#?}");
    assert!(names.iter().any(|name| name.starts_with("\"int8wo+semi-sparse-1024-512-256\" ")), "{names:#?}");
}
