//! `calorimeter doctor`: devices, stopwatches, and remedies for missing libraries; with `--deep`, checks of the
//! measurement itself.

use super::error::CliError;
use super::options::{DoctorArguments, TextFormat};
use crate::Exit;
use crate::print::print;
use crate::run::RunError;
use crate::worker::WorkerError;
use calorimeter_case::TuningLevel;
use calorimeter_probe::selftest::{self, Check, MockFaults, MockRig, RealRig};
use calorimeter_probe::{devices, host, platforms};
use std::fmt::Write;

pub fn doctor(arguments: DoctorArguments) -> Result<Exit, CliError> {
    if arguments.deep {
        return run_checks(arguments);
    }
    print(&device_overview())?;
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
    let mut printed = Ok(());
    let mut show = |check: &Check| {
        if text && printed.is_ok() {
            printed = print(&check_line(check));
        }
    };
    let checks = if platforms::for_device(device).is_simulated() {
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

fn check_line(check: &Check) -> String {
    let Check { name, passed, found, wanted, advice } = check;
    let word = match (passed, advice) {
        (Some(true), _) => "holds",
        (Some(false), _) => "FAILS",
        (None, Some(_)) => "note",
        (None, None) => "-",
    };
    let advice = advice.map_or_else(String::new, |advice| format!("         {:<20} advice: {advice}\n", ""));
    format!("  {word:<6} {name:<20} {found}\n         {:<20} expected: {wanted}\n{advice}", "")
}

fn device_overview() -> String {
    let mut text = String::new();
    let libraries = [("burn", option_env!("CALORIMETER_BURN")), ("cubecl", option_env!("CALORIMETER_CUBECL"))];
    let libraries: String =
        libraries.iter().filter_map(|(name, version)| Some(format!(", {name} {}", (*version)?))).collect();
    let _ = writeln!(text, "calorimeter {}{libraries}", env!("CARGO_PKG_VERSION"));
    if let Some(bytes) = host::available_memory() {
        let _ = writeln!(text, "memory available: {:.1} GB\n", bytes as f64 / 1e9);
    }
    let _ = writeln!(text, "Devices, in order of preference:");
    for found in devices::this_machine().all() {
        let software = if found.software { ", software: never chosen by `auto`" } else { "" };
        let _ = writeln!(text, "  {:<10} {} ({}{software})", found.device.to_string(), found.name, found.driver);
        let platform = platforms::for_device(found.device);
        let _ = writeln!(text, "  {:<10} clock: {}", "", platform.clock());
        let sensors = match platform.sensors(found.device, &found.facts()) {
            Ok(source) => source.name().to_owned(),
            Err(why) => format!("none: {why}"),
        };
        let _ = writeln!(text, "  {:<10} sensors: {sensors}", "");
    }
    for platform in platforms::all() {
        text += &platform
            .advice(devices::this_machine().all().any(|found| platform.kinds().contains(&found.device.kind())));
    }
    text
}
