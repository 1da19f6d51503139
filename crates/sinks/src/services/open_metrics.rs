//! OpenMetrics text format, for Prometheus and compatible systems.

use super::measured_records;
use calorimeter_case::Case;
use calorimeter_case::record::{Estimate, Record};
use std::fmt::Write;

/// Formats time in seconds and speed-up of every case: median and confidence interval, distinguished by the label
/// `bound`.
pub fn open_metrics(records: &[Record]) -> String {
    let mut text = "# HELP calorimeter_time_seconds Time of one run of a case.\n\
                    # TYPE calorimeter_time_seconds gauge\n\
                    # UNIT calorimeter_time_seconds seconds\n"
        .to_owned();
    for (record, Estimate { median, lo, hi }) in measured_records(records) {
        let seconds = |nanos: Option<f64>| nanos.map(|nanos| nanos / 1e9);
        samples(&mut text, "calorimeter_time_seconds", &record.case, [Some(median), lo, hi].map(seconds));
    }
    text += "# HELP calorimeter_speedup_ratio How many times faster a case is than its baseline.\n\
             # TYPE calorimeter_speedup_ratio gauge\n\
             # UNIT calorimeter_speedup_ratio ratio\n";
    for record in measured_records(records).map(|(record, _)| record) {
        if let Some(speedup) = &record.speedup {
            let values = [Some(speedup.ratio), speedup.lo, speedup.hi];
            samples(&mut text, "calorimeter_speedup_ratio", &record.case, values);
        }
    }
    text + "# EOF\n"
}

fn samples(text: &mut String, name: &str, case: &Case, [median, lower, upper]: [Option<f64>; 3]) {
    let labels = [
        ("case", case.id.to_string()),
        ("workload", case.workload.to_string()),
        ("recipe", case.variant()),
        ("implementation", case.implementation.to_string()),
        ("device", case.device.to_string()),
        ("dtype", case.element.to_string()),
        ("shape", case.shape.to_string()),
        ("regime", case.regime.to_string()),
    ];
    let labels = labels.map(|(label, value)| format!("{label}=\"{}\",", escaped(&value))).concat();
    for (bound, value) in [("median", median), ("lower", lower), ("upper", upper)] {
        if let Some(value) = value {
            // Infallible for strings.
            let _ = writeln!(text, "{name}{{{labels}bound=\"{bound}\"}} {value:e}");
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
