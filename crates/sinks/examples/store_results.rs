//! Uses `calorimeter-sinks` without the benchmark runner: custom measurements in a crash-safe journal, as a table on
//! the terminal, and in `results.csv`. With the feature `tables`, on by default, also in `results.parquet`.
//!
//! `cargo run -p calorimeter-sinks --no-default-features --example store_results [-- FOLDER]`

use calorimeter_case::{Case, Element, Implementation, Mode, Regime, Suite};
use calorimeter_sinks::journal::{Header, RunSummary, count_by_status};
use calorimeter_sinks::record::{Estimate, WindowRecord};
use calorimeter_sinks::terminal::{Color, LiveTable};
use calorimeter_sinks::{Journal, Record, SinkError, SinkInput, Status, write_all};
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), SinkError> {
    let dir: PathBuf = std::env::args_os().nth(1).map_or_else(|| "stored".into(), Into::into);
    let now = || chrono::Local::now().to_rfc3339();
    let header = Header {
        run_id: "sorting".into(),
        started: now(),
        argv: std::env::args().collect(),
        config: serde_json::json!({ "sizes": [1000, 10_000, 100_000] }),
        config_fingerprint: "1".into(),
        plan_cases: 3,
        environment: serde_json::json!({}),
        output_dir: None,
    };
    let mut journal = Journal::create(&dir, &header)?;
    let mut table = LiveTable::new(Color::Never);
    let mut records = Vec::new();
    for size in [1000, 10_000, 100_000] {
        let record = sorted(size);
        // On disk before the next case starts.
        journal.append(&record)?;
        table.show(&record).iter().for_each(|lines| println!("{lines}"));
        records.push(record);
    }
    let stored = journal.finish(&RunSummary {
        finished: now(),
        interrupted: false,
        counts: count_by_status(&records),
        notes: Vec::new(),
        suite: Vec::new(),
    })?;
    let written = write_all(&SinkInput { output_dir: dir.clone(), dir, header, records, stored });
    written.paths.iter().for_each(|path| println!("wrote {}", path.display()));
    written.errors.into_iter().next().map_or(Ok(()), Err)
}

/// Sorts `size` pseudo-random integers nine times.
fn sorted(size: u64) -> Record {
    let mut nanos: Vec<u64> = (0..9)
        .map(|_| {
            let mut numbers: Vec<u64> = (0..size).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let start = Instant::now();
            numbers.sort_unstable();
            std::hint::black_box(&numbers);
            start.elapsed().as_nanos() as u64
        })
        .collect();
    let windows = nanos.iter().map(|&nanos| WindowRecord { launches: 1, nanos, ..WindowRecord::default() }).collect();
    nanos.sort_unstable();
    let case = Case {
        id: format!("sort/{size}").into(),
        mode: Mode::Operator(Suite::Ops),
        workload: "sort_unstable".into(),
        implementation: Implementation::Native,
        element: Element::Unsigned(64),
        shape: [("numbers", size)].into(),
        regime: Regime::HostE2e,
        ..Case::default()
    };
    let mut record = Record::new(case, Status::Ok);
    record.execution.stopwatch = Some("wall".into());
    record.time.time_ns = Some(Estimate { median: nanos[nanos.len() / 2] as f64, lo: None, hi: None });
    record.time.windows = windows;
    record
}
