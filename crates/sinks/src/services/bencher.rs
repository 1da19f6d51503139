//! Bencher Metric Format: measures with bounds for each case.

use super::measured_records;
use calorimeter_case::record::{Estimate, Record};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct Measures {
    /// In ns.
    latency: Measure,
    #[serde(skip_serializing_if = "Option::is_none")]
    speedup: Option<Measure>,
}

#[derive(Serialize)]
struct Measure {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// Formats `latency` in ns and `speedup` of every case, with confidence intervals.
pub fn bencher(records: &[Record]) -> String {
    let measures = |(record, Estimate { median, lo, hi }): (&Record, Estimate)| {
        let latency = Measure { value: median, lower_value: lo, upper_value: hi };
        let speedup = record.speedup.as_ref();
        let speedup = speedup.map(|one| Measure { value: one.ratio, lower_value: one.lo, upper_value: one.hi });
        (record.case.id.to_string(), Measures { latency, speedup })
    };
    let cases: BTreeMap<String, Measures> = measured_records(records).map(measures).collect();
    serde_json::to_string_pretty(&cases).unwrap_or_default() + "\n"
}
