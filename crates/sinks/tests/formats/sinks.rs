//! Guarantees that hold for all sinks.

use crate::samples::{run, without_export};
use calorimeter_case::Export;
use calorimeter_sinks::{SinkError, SinkInput, sinks, write_all};
use std::error::Error;
use std::fs;

#[test]
fn failing_sinks_do_not_affect_others() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("results.csv/in the way")).unwrap();
    let mut run = run(dir.path(), vec![without_export("a")]);
    run.header.started = "yesterday".into();
    run.records[0].case.implied = false;
    let written = write_all(&run);
    let others: &[&str] = if cfg!(feature = "tables") { &["results.parquet", "index.html"] } else { &["index.html"] };
    assert_eq!(written.paths, others.iter().map(|name| dir.path().join(name)).collect::<Vec<_>>());
    let [SinkError::Write { path, .. }, SinkError::BadTime { started, .. }] = &written.errors[..] else {
        panic!("{:?}", written.errors)
    };
    assert!(path.ends_with("results.csv") && started == "yesterday", "{:?}", written.errors);
    assert!(written.errors.iter().all(|error| error.source().is_some()));
}

#[test]
fn sink_names_are_stable() {
    let names: Vec<&str> = sinks().iter().map(|sink| sink.name()).collect();
    let all = ["csv", "parquet", "torchao", "training", "accelerator", "flashinfer"];
    let there = all.into_iter().filter(|&name| cfg!(feature = "tables") || name != "parquet");
    assert_eq!(names, there.collect::<Vec<_>>());
}

/// Names come from configuration files and from journals, hence possibly from someone else.
#[test]
fn names_are_escaped_and_confined() {
    let (home, formula) = (tempfile::tempdir().unwrap(), "=cmd|'/C calc'!A0");
    let hostile = |lead: &str| {
        let mut record = without_export(lead);
        (record.case.name, record.case.shape_name) = (formula.into(), "@SUM(1)".into());
        record.case.workload = String::from("../../../outside").into();
        record
    };
    let mut record = hostile("1");
    record.case.export = Some(Box::new(Export { csv_path: Some("tables".into()), ..Export::default() }));
    let dir = home.path().join("deep/run");
    let run = SinkInput { output_dir: dir.clone(), ..run(&dir, vec![record, hostile("2")]) };
    let written = write_all(&run);
    assert!(written.errors.is_empty(), "{:?}", written.errors);
    for path in &written.paths {
        assert!(path.canonicalize().unwrap().starts_with(dir.canonicalize().unwrap()), "{}", path.display());
        let bytes = std::fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let cells = text.lines().flat_map(|line| line.split([',', '\t'])).map(|cell| cell.trim_start_matches('"'));
        if path.extension().is_some_and(|kind| kind != "parquet") {
            let formulas: Vec<&str> = cells.filter(|cell| cell.starts_with(['=', '@'])).collect();
            assert!(formulas.is_empty(), "{}: {formulas:?}", path.display());
        }
    }
    let csv = std::fs::read_to_string(dir.join("results.csv")).unwrap();
    assert!(csv.contains("'=cmd|") && csv.contains("'@SUM(1)"), "{csv}");
}
