//! Standalone use of `calorimeter-case`: a case and its record, as JSON and as table cells.
//!
//! `cargo run -p calorimeter-case --example a_record`

use calorimeter_case::record::{Accuracy, Column, Estimate, Speedup, Time};
use calorimeter_case::{Axes, Case, Device, Record, Status, Verdict};

fn main() -> serde_json::Result<()> {
    let case = Case {
        id: "inference/linear/int8wo/fused/cuda:0/f32/m1-k4096-n4096".into(),
        workload: "linear".into(),
        recipe: "int8wo".into(),
        device: Device::Cuda(0),
        shape: Axes::from([("m", 1), ("k", 4096), ("n", 4096)]),
        ..Case::default()
    };
    let mut record = Record::new(case, Status::Ok);
    record.time.time_ns = Some(Estimate { median: 12_340.0, lo: Some(12_300.0), hi: Some(12_380.0) });
    record.speedup = Some(Speedup { ratio: 1.9, verdict: Verdict::Faster, ..Speedup::default() });
    // The SQNR of an exact output is infinite. JSON has no infinity, so the field is omitted rather than set to 0.
    record.accuracy =
        Some(Box::new(Accuracy { sqnr_db: Some(f64::INFINITY), rel_l2: Some(0.0), ..Accuracy::default() }));

    let json = serde_json::to_string_pretty(&record)?;
    println!("{json}\n");
    assert!(!json.contains("sqnr_db"));

    print_cells(Case::COLUMNS, &record.case);
    print_cells(Time::COLUMNS, &record.time);
    Ok(())
}

/// Prints the columns of one facet.
fn print_cells<F>(columns: &[Column<F>], facet: &F) {
    for (column, cell) in columns.iter().filter_map(|column| Some((column, column.cell(facet)?))) {
        println!("{:16} {cell:?}", column.name);
    }
}

#[test]
fn example_runs() {
    main().unwrap();
}
