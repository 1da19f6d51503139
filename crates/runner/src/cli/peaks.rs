//! `calorimeter peaks`: measured peaks of the devices.

use super::error::CliError;
use super::options::TextFormat;
use crate::Exit;
use crate::entries::DeviceSelection;
use crate::print::print;
use crate::rough_time::announce_duration;
use crate::run::RunError;
use calorimeter_case::TuningLevel;
use calorimeter_probe::devices::DiscoveredDevice;
use calorimeter_probe::peaks::{self, DevicePeaks, PeakProbe};
use calorimeter_probe::sensors::Sensors;
use calorimeter_probe::{host, with_stderr_prefix};
use calorimeter_sinks::terminal::{four_digits, operations};
use calorimeter_sinks::{cache, log_line};
use calorimeter_zoo::NativeDevices;
use chrono::{DateTime, Local, TimeDelta};
use clap::Args;
use std::fmt::Write;
use std::path::Path;

const EXIT_CODES: &str = "Exit codes:
  0    the peaks were printed
  2    invalid usage, or a device without peaks
  5    a peak could not be measured";

/// Show the measured peaks of this machine's devices, or measure them again.
///
/// Percentages such as `84 % memory` are relative to these peaks: the fastest of copies and reads far larger than the
/// cache, and square matmuls in each precision, in a burst and under a second of continuous load. A run measures the
/// peaks that its cases need and stores them; a case that exceeds a peak triggers a new measurement. Peaks apply to one
/// device with one driver and one clock policy.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct PeaksArguments {
    /// Measure the peaks of a device again: memory, cache and every matmul precision that it supports
    #[arg(long)]
    pub measure: bool,
    /// Device for --measure: auto, cuda[:i], vulkan[:i], metal, wgpu, cpu
    #[arg(long, value_name = "DEVICE", env = "CALORIMETER_DEVICE", default_value = "auto")]
    pub device: DeviceSelection,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
}

pub(super) fn peaks(arguments: PeaksArguments) -> Result<Exit, CliError> {
    let folder = cache::cache_dir("peaks");
    let known = if arguments.measure {
        let found = arguments.device.find().map_err(RunError::from)?;
        vec![measure_peaks(&found, folder.as_deref())?]
    } else {
        cached_peaks(folder.as_deref())
    };
    match arguments.format {
        TextFormat::Json => print(&format!("{:#}\n", serde_json::json!(known)))?,
        TextFormat::Text if known.is_empty() => {
            print("no stored peaks: runs measure the peaks they need, `calorimeter peaks --measure` measures all\n")?;
        }
        TextFormat::Text => {
            print(&known.iter().map(|peaks| peaks_text(peaks, host::now())).collect::<Vec<_>>().join("\n"))?
        }
    }
    let failed = known.iter().flat_map(|peaks| &peaks.failed);
    let failed = failed.map(|(limit, why)| log_line!("error: cannot measure the peak of {limit}: {why}")).count();
    Ok(if failed == 0 { Exit::Success } else { Exit::CaseFailed })
}

/// Measures the peaks of a device, including precisions that earlier runs have stored but the device does not list.
fn measure_peaks(found: &DiscoveredDevice, folder: Option<&Path>) -> Result<DevicePeaks, CliError> {
    let (device, facts) = (found.device, found.facts());
    calorimeter_zoo::backends::configure(cache::cache_dir("tuning").as_deref(), TuningLevel::Full, false);
    let policy = Sensors::start(device, &facts).policy();
    let mut machines = NativeDevices::default();
    let mut probe = PeakProbe { facts: &facts, policy, device, may_tune: true, machines: &mut machines };
    let driver = device.kind().name().to_string();
    let mut kinds = with_stderr_prefix(&driver, || probe.supported_precisions());
    let stored = cached_peaks(folder).into_iter().filter(|peaks| peaks.device == facts.identity);
    kinds.extend(stored.flat_map(|peaks| peaks.products.into_keys()));
    kinds.sort_unstable();
    kinds.dedup();
    let (min, max) = probe.predicted_seconds(&kinds);
    announce_duration(min, max, ", if kernels are tuned; otherwise longer");
    let mut measured = Some(probe.empty_peaks());
    with_stderr_prefix(&driver, || peaks::load_or_measure(&kinds, &mut measured, folder, &mut probe))
        .ok_or_else(|| CliError::Usage(format!("{device} has no peaks: its times are simulated")))
}

/// Reads the stored peaks, sorted by device name. Unreadable files are reported as warnings.
fn cached_peaks(folder: Option<&Path>) -> Vec<DevicePeaks> {
    let files = folder.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let read = |file: std::fs::DirEntry| match peaks::read_file(&file.path()) {
        Ok(peaks) => peaks,
        Err(why) => {
            log_line!("warning: {why}");
            None
        }
    };
    let mut peaks: Vec<DevicePeaks> = files.filter_map(read).collect();
    peaks.sort_by(|a, b| a.device.cmp(&b.device));
    peaks
}

fn peaks_text(peaks: &DevicePeaks, now: DateTime<Local>) -> String {
    let DevicePeaks { device, driver, policy, memory_gbps, cache_gbps, memory_looks, products, .. } = peaks;
    let mut text =
        format!("{device}\n  driver: {driver}\n  clocks: {policy}\n  measured: {}\n", measurement_age(peaks, now));
    if let Some(memory) = memory_gbps {
        let range = memory_looks.interval().filter(|_| memory_looks.rates().len() > 1);
        let range = range.map(|(lo, hi)| {
            format!("; {} samples from {} to {}", memory_looks.rates().len(), four_digits(lo), four_digits(hi))
        });
        let _ = writeln!(text, "  memory  {} GB/s{}", four_digits(*memory), range.unwrap_or_default());
    }
    if let Some(cache) = cache_gbps {
        let _ = writeln!(text, "  cache   {} GB/s", four_digits(*cache));
    }
    for (kind, peak) in products {
        let (burst, sustained) = (operations(peak.burst), operations(peak.sustained));
        let _ = writeln!(text, "  {kind:<6}  {burst}FLOP/s in a burst, {sustained}FLOP/s under load");
    }
    text
}

/// Date of the measurement, and its age.
fn measurement_age(peaks: &DevicePeaks, now: DateTime<Local>) -> String {
    let Ok(measured) = DateTime::parse_from_rfc3339(&peaks.measured) else { return "at an unknown time".into() };
    let age = now.signed_duration_since(measured);
    let ago = match (age.num_days(), age.num_hours(), age.num_minutes()) {
        _ if age < TimeDelta::zero() => "in the future".into(),
        (0, 0, minutes) => format!("{minutes} min ago"),
        (0, hours, _) => format!("{hours} h ago"),
        (1, ..) => "a day ago".into(),
        (days, ..) => format!("{days} days ago"),
    };
    format!("{}, {ago}", measured.with_timezone(&now.timezone()).format("%Y-%m-%d %H:%M"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_use_the_largest_fitting_unit() {
        let now = host::now();
        let aged = |age: TimeDelta| DevicePeaks { measured: (now - age).to_rfc3339(), ..DevicePeaks::default() };
        for (age, ago) in [
            (TimeDelta::minutes(5), ", 5 min ago"),
            (TimeDelta::hours(23), ", 23 h ago"),
            (TimeDelta::hours(25), ", a day ago"),
            (TimeDelta::days(40), ", 40 days ago"),
            (TimeDelta::days(-1), ", in the future"),
        ] {
            assert!(measurement_age(&aged(age), now).ends_with(ago), "{}", measurement_age(&aged(age), now));
        }
        assert_eq!(measurement_age(&DevicePeaks::default(), now), "at an unknown time");
    }
}
