//! The sinks together.

use crate::samples::{run, stays_home};
use calorimeter_sinks::{sinks, write_all};
use std::error::Error;
use std::fs;

#[test]
fn one_failing_sink_does_not_take_the_others_with_it() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("results.csv/in the way")).unwrap();
    let mut run = run(dir.path(), vec![stays_home("a")]);
    run.header.started = "yesterday".into();
    run.records[0].case.implied = false;
    let written = write_all(&run);
    let others: &[&str] = if cfg!(feature = "tables") { &["results.parquet"] } else { &[] };
    assert_eq!(written.paths, others.iter().map(|name| dir.path().join(name)).collect::<Vec<_>>());
    let errors: Vec<String> = written.errors.iter().map(ToString::to_string).collect();
    assert!(errors[0].contains("results.csv"), "{errors:?}");
    assert!(errors[1].contains("\"yesterday\", is not an RFC 3339 time"), "{errors:?}");
    assert!(written.errors.iter().all(|error| error.source().is_some()));
}

#[test]
fn the_sinks_have_these_names() {
    let names: Vec<&str> = sinks().iter().map(|sink| sink.name()).collect();
    let all = ["csv", "parquet", "torchao", "accelerator"];
    let there = all.into_iter().filter(|&name| cfg!(feature = "tables") || name != "parquet");
    assert_eq!(names, there.collect::<Vec<_>>());
}

// ---- the files of torchao's micro-benchmarks
