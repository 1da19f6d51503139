//! `calorimeter doctor`: devices, stopwatches, and remedies for missing libraries; with `--deep`, checks of the
//! measurement itself.

use super::error::CliError;
use super::layout::{paragraph, rows, rows_with_column};
use super::options::{DoctorArguments, TextFormat};
use crate::Exit;
use crate::print::{print, width};
use crate::rough_time::announce_duration;
use crate::run::RunError;
use crate::worker::WorkerError;
use calorimeter_case::TuningLevel;
use calorimeter_probe::devices::DiscoveredDevice;
use calorimeter_probe::platforms::Advice;
use calorimeter_probe::selftest::{self, Check, MockFaults, MockRig, RealRig};
use calorimeter_probe::{devices, host, platforms};
use calorimeter_zoo::backends::missing_features;
use std::fmt::Write;

pub(super) fn doctor(arguments: DoctorArguments) -> Result<Exit, CliError> {
    if arguments.deep {
        return run_checks(arguments);
    }
    print(&device_overview(width()))?;
    Ok(Exit::Success)
}

fn run_checks(arguments: DoctorArguments) -> Result<Exit, CliError> {
    let found = arguments.device.find().map_err(RunError::from)?;
    let device = found.device;
    // Without a folder of its own, CubeCL stores autotune results in the project that contains the working directory.
    let tuning = tempfile::tempdir().map_err(WorkerError::Spawn).map_err(RunError::from)?;
    calorimeter_zoo::backends::configure(Some(tuning.path()), TuningLevel::Full, false);
    let (name, text) = (found.name.clone(), arguments.format == TextFormat::Text);
    if text {
        print(&format!("{device} ({name})\n"))?;
    }
    let simulated = platforms::for_device(device).is_simulated();
    if !simulated {
        let (min, max) = selftest::predicted_seconds();
        announce_duration(min, max, "");
    }
    let mut printed = Ok(());
    let mut show = |check: &Check| {
        if text && printed.is_ok() {
            printed = print(&check_line(check, width()));
        }
    };
    let checks = if simulated {
        selftest::run(&mut MockRig::new(MockFaults::default()), &mut show)
    } else {
        let mut rig = RealRig::open(found).map_err(|error| CliError::Usage(format!("{device}: {error}")))?;
        selftest::run(&mut rig, &mut show)
    };
    if !text {
        let report = serde_json::json!({ "device": device.to_string(), "name": name, "checks": checks });
        printed = print(&format!("{report:#}\n"));
    }
    printed?;
    let holds = checks.iter().all(|check| check.passed != Some(false));
    Ok(if holds { Exit::Success } else { Exit::CaseFailed })
}

/// Width of the column of results and names of checks.
const CHECK_COLUMN: usize = 26;

fn check_line(check: &Check, width: usize) -> String {
    let Check { name, passed, found, wanted, advice } = check;
    let word = match (passed, advice) {
        (Some(true), _) => "holds",
        (Some(false), _) => "FAILS",
        (None, Some(_)) => "note",
        (None, None) => "-",
    };
    let mut table = vec![(format!("{word:<6} {name}"), found.clone()), (String::new(), format!("expected: {wanted}"))];
    table.extend(advice.map(|advice| (String::new(), format!("advice: {advice}"))));
    rows_with_column(&table, CHECK_COLUMN, width)
}

/// Devices, and what is missing, in lines of `width` characters; begins with the conclusion.
fn device_overview(width: usize) -> String {
    let machine = devices::this_machine();
    let usable: Vec<String> = machine.all().map(usable_device).collect();
    let mut text = paragraph(&format!("You can benchmark: {}.", usable.join(", ")), width);
    text += "Next: calorimeter run quickstart\n\n";
    let libraries = [("burn", option_env!("CALORIMETER_BURN")), ("cubecl", option_env!("CALORIMETER_CUBECL"))];
    let libraries: String =
        libraries.iter().filter_map(|(name, version)| Some(format!(", {name} {}", (*version)?))).collect();
    let _ = writeln!(text, "calorimeter {}{libraries}", env!("CARGO_PKG_VERSION"));
    if let Some(bytes) = host::available_memory() {
        let _ = writeln!(text, "memory available: {:.1} GB", bytes as f64 / 1e9);
    }
    text += "\nDevices, in order of preference:\n";
    text += &rows(&machine.all().flat_map(device_rows).collect::<Vec<_>>(), width);
    for platform in platforms::all() {
        let devices = || machine.all().filter(|found| platform.kinds().contains(&found.device.kind()));
        let mut section = String::new();
        if let Some(Advice { heading, rows: libraries }) = platform.advice(devices().next().is_some()) {
            section = paragraph(&heading, width) + &rows(&libraries, width);
        }
        // A software device may replace a GPU whose driver fails.
        if let Some(kind) = platform.kinds().first().filter(|_| devices().all(|found| found.software)) {
            for message in machine.driver_messages(*kind) {
                section += &paragraph(&format!("The driver of {kind} reports: {message}"), width);
            }
        }
        if !section.is_empty() {
            text += &format!("\n{section}");
        }
    }
    text + &missing_features_section(width)
}

/// Device with its restriction, if there is one: `cuda:0 (native)`.
fn usable_device(found: &DiscoveredDevice) -> String {
    let kind = found.device.kind();
    let native_only = missing_features().iter().any(|missing| missing.has_native && missing.kinds.contains(&kind));
    match (found.software, native_only) {
        (true, _) => format!("{} (software)", found.device),
        (false, true) => format!("{} (native)", found.device),
        (false, false) => found.device.to_string(),
    }
}

fn device_rows(found: &DiscoveredDevice) -> [(String, String); 3] {
    let DiscoveredDevice { device, name, driver, .. } = found;
    let software = if found.software { ", software: never chosen by `auto`" } else { "" };
    let platform = platforms::for_device(*device);
    let sensors = match platform.sensors(*device, &found.facts()) {
        Ok(source) => source.name().to_owned(),
        Err(why) => format!("none: {why}"),
    };
    [
        (device.to_string(), format!("{name} ({driver}{software})")),
        (String::new(), format!("clock: {}", platform.clock())),
        (String::new(), format!("sensors: {sensors}")),
    ]
}

/// Devices and implementations that this build lacks, with the features that add them. Empty if the build is complete.
pub(super) fn missing_features_section(width: usize) -> String {
    let missing = missing_features();
    if missing.is_empty() {
        return String::new();
    }
    let table: Vec<_> = missing.iter().map(|missing| (missing.subject(), missing.remedy())).collect();
    format!("\nNot in this build:\n{}", rows(&table, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overview_begins_with_the_conclusion_and_fits_the_width() {
        for width in [60, 80, 120] {
            let overview = device_overview(width);
            let conclusion = overview.split("\n\n").next().unwrap_or_default();
            for found in devices::this_machine().all() {
                assert!(conclusion.contains(&found.device.to_string()), "{overview}");
            }
            for line in overview.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn missing_features_have_a_remedy() {
        let section = missing_features_section(120);
        for missing in missing_features() {
            assert!(section.contains(&missing.subject()) && section.contains(&missing.remedy()), "{section}");
        }
        assert_eq!(section.is_empty(), missing_features().is_empty());
    }
}
