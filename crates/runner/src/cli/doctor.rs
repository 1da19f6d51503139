//! `calorimeter doctor`: what is here, which clock will be used, how to get what is missing; with `--deep`, whether
//! measuring on a device can be believed.

use super::options::{DoctorArguments, TextFormat};
use super::{CliError, print};
use crate::Exit;
use crate::clocks;
use crate::device_sensors;
use crate::devices;
use crate::environment;
use crate::run::RunError;
use crate::selftest::{self, Check, Lies, MockRig, RealRig};
use calorimeter_zoo::Device;
use std::fmt::Write;

pub fn doctor(arguments: DoctorArguments) -> Result<Exit, CliError> {
    if arguments.deep { deep(arguments) } else { Ok(print(&shallow())) }
}

fn deep(arguments: DoctorArguments) -> Result<Exit, CliError> {
    let device = devices::here().choose(arguments.device).map_err(RunError::from)?;
    let found = devices::present(device).map_err(RunError::from)?;
    calorimeter_zoo::backends::configure(None, false);
    let (name, text) = (found.name.clone(), arguments.format == TextFormat::Text);
    let mut show = |check: &Check| {
        if text {
            print(&line(check));
        }
    };
    if text {
        print(&format!("{device} ({name})\n"));
    }
    let checks = if device == Device::Mock {
        selftest::run(&mut MockRig::new(Lies::default()), &mut show)
    } else {
        let mut rig = RealRig::open(found).map_err(|error| CliError::Usage(format!("{device}: {error}")))?;
        selftest::run(&mut rig, &mut show)
    };
    if !text {
        let report = serde_json::json!({ "device": device.to_string(), "name": name, "checks": checks });
        print(&format!("{report:#}\n"));
    }
    let holds = checks.iter().all(|check| check.passed != Some(false));
    Ok(if holds { Exit::Fine } else { Exit::Broken })
}

fn line(check: &Check) -> String {
    let Check { name, passed, found, wanted } = check;
    let word = match passed {
        Some(true) => "holds",
        Some(false) => "FAILS",
        None => "-",
    };
    format!("  {word:<6} {name:<20} {found}\n         {:<20} wanted: {wanted}\n", "")
}

fn shallow() -> String {
    let mut text = String::new();
    let _ = writeln!(text, "calorimeter {}, burn 0.21.0, cubecl 0.10.0", env!("CARGO_PKG_VERSION"));
    if let Some(bytes) = environment::available_memory() {
        let _ = writeln!(text, "memory available: {:.1} GB\n", bytes as f64 / 1e9);
    }
    let _ = writeln!(text, "Devices, the best first:");
    for found in devices::here().all() {
        let software = if found.software { ", software: never chosen by `auto`" } else { "" };
        let _ = writeln!(text, "  {:<10} {} ({}{software})", found.device.to_string(), found.name, found.driver);
        let _ = writeln!(text, "  {:<10} clock: {}", "", clocks::expected(found.device));
        let sensors = match device_sensors::of(found.device, &found.facts()) {
            Ok(source) => source.name().to_owned(),
            Err(why) => format!("none: {why}"),
        };
        let _ = writeln!(text, "  {:<10} sensors: {sensors}", "");
    }
    let has = |wanted: fn(Device) -> bool| devices::here().all().any(|found| wanted(found.device));
    libraries(&mut text, has(|device| matches!(device, Device::Cuda(_))));
    if cfg!(feature = "wgpu") && !has(|device| matches!(device, Device::Vulkan(_) | Device::Metal(_))) {
        let _ =
            writeln!(text, "\nNo Vulkan adapter: install the GPU's Vulkan driver and a loader (Debian: libvulkan1,");
        let _ = writeln!(text, "and mesa-vulkan-drivers for AMD, Intel or a software adapter).");
    }
    text
}

#[cfg(feature = "cuda")]
fn libraries(text: &mut String, gpu: bool) {
    let _ = writeln!(text, "\nCUDA libraries, looked for on the loader's path:");
    for library in calorimeter_kernels::native::libraries() {
        let state = if library.loaded { "loaded" } else { "missing" };
        let need = if library.required { "" } else { ", optional" };
        let _ = writeln!(text, "  {:<12} {state:<8} {}{need}", library.name, library.purpose);
        if let (Some(why), true) = (&library.why, gpu) {
            let _ = writeln!(text, "               {why}");
        }
    }
    let _ = writeln!(text, "  {}", calorimeter_timing::nvtx::state());
    match calorimeter_kernels::native::probe() {
        Ok(gpus) if gpus.is_empty() => drop(writeln!(text, "The CUDA driver is here and finds no GPU.")),
        Ok(_) => {}
        Err(error) => drop(writeln!(text, "No CUDA device: {error}")),
    }
}

#[cfg(not(feature = "cuda"))]
fn libraries(text: &mut String, _: bool) {
    let _ = writeln!(text, "\nThis build has no CUDA; build with `--features cuda`.");
}
