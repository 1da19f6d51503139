//! Calibration profile as text.

use super::fusion::FusionProfile;
use super::fusion_verdict::FusionVerdict;
use super::levels::MemoryLevel;
use super::operation_profiles::OperationProfile;
use super::part::CalibrationPart;
use super::peaks::CalibratedPeak;
use super::profile::CalibrationProfile;
use super::purpose::Purpose;
use calorimeter_sinks::terminal::nanoseconds;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Formats the tables of a profile.
pub fn show(profile: &CalibrationProfile) -> String {
    let environment = &profile.environment;
    let device = ["device", "name", "driver"].map(|key| environment.device[key].as_str().unwrap_or_default());
    let device = device.into_iter().filter(|word| !word.is_empty() && *word != environment.hardware_name);
    let device = device.collect::<Vec<_>>().join(", ");
    let (hardware, version, started) = (&environment.hardware_name, &environment.calorimeter, &environment.started);
    let mut text = format!("{hardware}  ({device}; calorimeter {version}, {started})\n");
    let sections = [
        ("Peaks", peaks(profile)),
        ("Memory hierarchy, by working set of a copy", levels(profile)),
        ("Launches", launches(profile)),
        ("Fastest size of each operation", best_sizes(profile)),
        ("Fusion", fusions(profile)),
        ("Precisions", precisions(profile)),
        ("Not measured", not_measured(profile)),
        ("Notes", profile.notes.iter().map(|note| format!("  {note}\n")).collect()),
    ];
    for (title, section) in sections.iter().filter(|(_, section)| !section.is_empty()) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{title}\n{section}");
    }
    text
}

fn peaks(profile: &CalibrationProfile) -> String {
    let line = |(kind, peak): (&String, &CalibratedPeak)| {
        let stated = peak.stated.map_or_else(String::new, |stated| format!("  stated {}", figure(stated)));
        let finding = peak.finding.as_ref().map_or_else(String::new, |finding| format!(": {finding}"));
        format!("  {kind:<8} {:>10} {:<8} {}{stated}{finding}\n", figure(peak.measured), peak.unit, peak.by)
    };
    profile.peaks.iter().map(line).collect()
}

fn levels(profile: &CalibrationProfile) -> String {
    let line = |level: &MemoryLevel| {
        let (from, to) = (size(level.from_bytes), size(level.to_bytes));
        format!("  {from:>8} to {to:>8} {:>10} GB/s  {}\n", figure(level.gbps), level.kind)
    };
    profile.cache_levels.iter().map(line).collect()
}

fn launches(profile: &CalibrationProfile) -> String {
    let line = |operation: &OperationProfile| {
        let time =
            operation.median_latency_ms.map_or_else(|| failure_text(operation), |millis| nanoseconds(1e6 * millis));
        format!("  {:<12} {:<14} {time}\n", operation.implementation, operation.regime)
    };
    profile
        .operation_profiles
        .values()
        .filter(|one| purpose(one).part() == Some(CalibrationPart::Latency))
        .map(line)
        .collect()
}

/// Fastest size of each operation: by FLOP/s for matmuls, otherwise by bandwidth.
fn best_sizes(profile: &CalibrationProfile) -> String {
    let mut best: BTreeMap<[&str; 3], &OperationProfile> = BTreeMap::new();
    let is_compared = |one: &&OperationProfile| {
        ![Some(CalibrationPart::Latency), Some(CalibrationPart::Cache)].contains(&purpose(one).part())
    };
    for operation in profile.operation_profiles.values().filter(is_compared) {
        let key = [&operation.operation_type, &operation.precision, &operation.implementation].map(String::as_str);
        let known = best.entry(key).or_insert(operation);
        if rate(operation) > rate(known) {
            *known = operation;
        }
    }
    let line = |operation: &&OperationProfile| {
        let OperationProfile { operation_type, precision, implementation, input_shape, .. } = operation;
        let head = format!("  {operation_type:<13} {precision:<5} {implementation:<7} {:<22}", input_shape.to_string());
        let Some(millis) = operation.median_latency_ms else { return format!("{head} {}\n", failure_text(operation)) };
        let optional = |value: Option<f64>| value.map_or_else(|| "-".into(), figure);
        let share = operation.efficiency.zip(operation.bound.as_ref());
        let share = share.map_or_else(String::new, |(share, bound)| format!("  {:.0} % of {bound}", 100.0 * share));
        let launching = if operation.launch_bound == Some(true) { "  launch-bound" } else { "" };
        format!(
            "{head} {:>9} {:>9} GFLOP/s {:>9} GB/s{share}{launching}\n",
            nanoseconds(1e6 * millis),
            optional(operation.measured_gflops),
            optional(operation.achieved_bandwidth_gbps)
        )
    };
    best.values().map(line).collect()
}

/// Purpose of an operation, which may come from a file.
fn purpose(operation: &OperationProfile) -> Purpose {
    Purpose::from_words(&operation.part, &operation.operation_type)
}

fn rate(operation: &OperationProfile) -> f64 {
    let compute = operation.measured_gflops.filter(|_| purpose(operation).is_matmul());
    compute.or(operation.achieved_bandwidth_gbps).unwrap_or(0.0)
}

fn failure_text(operation: &OperationProfile) -> String {
    format!("{}: {}", operation.status, operation.reason.as_deref().unwrap_or("no reason recorded"))
}

/// Formats one line per compared pattern, and the unavailable ones grouped by reason.
fn fusions(profile: &CalibrationProfile) -> String {
    let mut text = String::new();
    let mut absent: BTreeMap<(FusionVerdict, &str), Vec<&str>> = BTreeMap::new();
    for fusion in profile.fusion_profiles.values() {
        let Some(factor) = fusion.speedup_factor else {
            let names = absent.entry((fusion.verdict, fusion.reason.as_deref().unwrap_or_default())).or_default();
            if !names.contains(&fusion.operator.as_str()) {
                names.push(&fusion.operator);
            }
            continue;
        };
        let interval = fusion.speedup_lo.zip(fusion.speedup_hi);
        let interval = interval.map_or_else(String::new, |(lo, hi)| format!("[{lo:.2}, {hi:.2}]"));
        let launches = fusion.unfused_launches.zip(fusion.fused_launches);
        let launches = launches.map_or_else(|| "-".into(), |(unfused, fused)| format!("{unfused} to {fused}"));
        let FusionProfile { operator, precision, implementation, extra_params, verdict, .. } = fusion;
        let verdict = verdict.as_str();
        let _ = writeln!(
            text,
            "  {operator:<21} {precision:<5} {implementation:<7} {factor:>5.2}x {interval:<14} {verdict:<12} kernels \
             {launches:<8} {extra_params}"
        );
    }
    for ((verdict, reason), names) in absent {
        let _ = writeln!(text, "  {}: {reason}\n    {}", verdict.as_str(), names.join(", "));
    }
    text
}

fn precisions(profile: &CalibrationProfile) -> String {
    let matrix = &profile.precision_matrix;
    if matrix.supported_precisions.is_empty() {
        return String::new();
    }
    let line = |name: &String| match matrix.speedup_vs_fp32.get(name) {
        Some(speedup) => format!("  {name:<5} {:.2}x f32 at {}\n", speedup.ratio, speedup.shape),
        None => format!("  {name}\n"),
    };
    matrix.supported_precisions.iter().map(line).collect()
}

fn not_measured(profile: &CalibrationProfile) -> String {
    profile.not_measured.iter().map(|(part, why)| format!("  {part}: {why}\n")).collect()
}

/// Formats at least four digits without an exponent.
fn figure(value: f64) -> String {
    match value {
        ..10.0 => format!("{value:.3}"),
        ..100.0 => format!("{value:.2}"),
        ..1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn size(bytes: u64) -> String {
    let (shift, unit) = match bytes.max(1).ilog2() {
        0..20 => (10, "KiB"),
        20..30 => (20, "MiB"),
        _ => (30, "GiB"),
    };
    format!("{} {unit}", bytes >> shift)
}
