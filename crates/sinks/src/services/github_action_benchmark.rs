//! List for `github-action-benchmark`, tool `customSmallerIsBetter`.

use super::measured_records;
use calorimeter_case::record::{Estimate, Record, Speedup};
use serde::Serialize;

#[derive(Serialize)]
struct BenchmarkActionEntry {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra: Option<String>,
}

/// Formats the time of every case in ns; the range is the larger side of its confidence interval.
pub fn github_action_benchmark(records: &[Record]) -> String {
    let entry = |(record, Estimate { median, lo, hi }): (&'_ Record, Estimate)| {
        let picoseconds = |nanos: f64| (nanos * 1e3).round() / 1e3;
        let range = lo.zip(hi).map(|(lo, hi)| format!("± {}", picoseconds((median - lo).max(hi - median))));
        let told = |speedup: &Speedup| format!("{:.3}x {} than {}", speedup.ratio, speedup.verdict, speedup.vs);
        let (name, extra) = (record.case.id.to_string(), record.speedup.as_ref().map(told));
        BenchmarkActionEntry { name, unit: "ns", value: median, range, extra }
    };
    let entries: Vec<BenchmarkActionEntry> = measured_records(records).map(entry).collect();
    serde_json::to_string_pretty(&entries).unwrap_or_default() + "\n"
}
