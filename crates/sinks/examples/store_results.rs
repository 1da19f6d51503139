//! Uses `calorimeter-sinks` without the benchmark runner: custom measurements in a crash-safe journal, as a table on
//! the terminal, and in `results.csv`. With the feature `tables`, on by default, also in `results.parquet`.
//!
//! `cargo run -p calorimeter-sinks --no-default-features --example store_results [-- FOLDER]`

use calorimeter_case::{Case, Element, Implementation, Mode, Regime, Suite};
use calorimeter_sinks::journal::Header;
use calorimeter_sinks::record::{Estimate, WindowRecord};
use calorimeter_sinks::serde_json::json;
use calorimeter_sinks::terminal::{Color, LiveTable};
use calorimeter_sinks::{Journal, Record, SinkError, SinkInput, Status, write_all};
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), SinkError> {
    let dir: PathBuf = std::env::args_os().nth(1).map_or_else(|| "stored".into(), Into::into);
    let sizes = [1000, 10_000, 100_000];
    let header =
        Header { config: json!({ "sizes": sizes }), plan_cases: Some(sizes.len() as u64), ..Header::now("sorting") };
    let mut journal = Journal::create(&dir, &header)?;
    let mut table = LiveTable::new(Color::Never);
    for size in sizes {
        let record = sorted(size);
        // On disk before the next case starts.
        journal.append(&record)?;
        // The table of a group is complete when the next one starts.
        table.add(&record).iter().for_each(|lines| println!("{lines}"));
    }
    table.finish_group().iter().for_each(|lines| println!("{lines}"));
    journal.finish_now()?;

    let written = write_all(&SinkInput::read(&dir)?);
    written.paths.iter().for_each(|path| println!("wrote {}", path.display()));
    written.errors.into_iter().next().map_or(Ok(()), Err)
}

/// Sorts `size` pseudo-random integers nine times.
fn sorted(size: u64) -> Record {
    let mut nanos: Vec<u64> = (0..9)
        .map(|_| {
            let mut numbers: Vec<i32> = (0..size as i32).map(|i| i.wrapping_mul(0x1e37_79b1)).collect();
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
        element: Element::Signed(32),
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
