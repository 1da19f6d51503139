//! What cells are made of that is no single value of the record.

use crate::record::{Accuracy, Record, Speedup, Telemetry, TelemetrySample};

pub fn speedup(record: &Record) -> Option<&Speedup> {
    record.speedup.as_ref()
}

pub fn accuracy(record: &Record) -> Accuracy {
    record.accuracy.as_deref().copied().unwrap_or_default()
}

/// The record, if it has windows.
pub fn measured(record: &Record) -> Option<&Record> {
    (!record.time.windows.is_empty()).then_some(record)
}

pub fn windows(record: &Record) -> String {
    let windows: Vec<String> = record.time.windows.iter().map(|w| format!("{}:{}", w.launches, w.nanos)).collect();
    windows.join(";")
}

/// The list as one text, or nothing where it is empty.
pub fn joined(list: &[String]) -> Option<String> {
    (!list.is_empty()).then(|| list.join("; "))
}

/// The middle one of a case's samples.
pub fn middle(record: &Record, of: impl Fn(&TelemetrySample) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = record.telemetry.as_ref()?.samples.iter().filter_map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Every reason that was seen, once.
pub fn throttle(telemetry: &Telemetry) -> Option<String> {
    let mut reasons: Vec<&str> = telemetry.samples.iter().flat_map(|s| s.throttle.iter().map(String::as_str)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    (!reasons.is_empty()).then(|| reasons.join(", "))
}
