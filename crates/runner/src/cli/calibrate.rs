//! `calorimeter calibrate`.

use super::error::CliError;
use super::options::RunArguments;
use super::run::{execute, report_outcome};
use crate::Exit;
use crate::calibration::{CalibrationOptions, CalibrationTarget, entries};
use crate::entries::{DeviceSelection, Entry};
use crate::print::print;
use crate::progress::RecordFormat;
use crate::run::{Request, RunError};
use calorimeter_probe::calibration::{
    CalibrationProfile, Operations, Patterns, ProfileLabels, StatedPeaks, add, all_operations, latest, read_journal,
    show,
};
use calorimeter_probe::devices::DiscoveredDevice;
use calorimeter_probe::host::available_memory;
use calorimeter_probe::platforms;
use calorimeter_recipes::Dtype;
use calorimeter_sinks::terminal::escape_lines;
use calorimeter_sinks::{index, log_line};
use clap::Args;
use std::path::{Path, PathBuf};

/// Measure the peaks of a device and write its calibration profile.
///
/// Measures STREAM (copies and additions of arrays), BLAS routines, launch latency and the levels of the memory
/// hierarchy, with the same method as any run; with --fusion-patterns also the speed-up of fused operators. The profile
/// is DIR/profile.json in the folder of the run. It is computed from the run's journal.
#[derive(Debug, Args)]
pub(super) struct CalibrateArguments {
    /// Name of the hardware [default: name of the device]
    #[arg(long, value_name = "NAME")]
    pub hardware: Option<String>,
    /// Stated f32 matmul peak in GFLOP/s; reported next to the measured peak, never used in its place
    #[arg(long, value_name = "X", value_parser = parse_positive)]
    pub peak_gflops: Option<f64>,
    /// Stated memory bandwidth in GB/s; reported next to the measured bandwidth, never used in its place
    #[arg(long, value_name = "Y", value_parser = parse_positive)]
    pub peak_bandwidth: Option<f64>,
    /// Also write the profile to this file
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Measure less: fewer and smaller sizes, two dtypes on a GPU, one implementation per operation, each pattern once,
    /// and shorter times
    #[arg(long)]
    pub quick: bool,
    /// Operations to measure: matmul, memory (or stream), stream_copy, stream_scale, stream_add, stream_triad, blas,
    /// blas1, blas2, blas3, dot, axpy, gemv, gemm, cache, latency, transfer [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub operations: Option<Vec<Operations>>,
    /// Fusion patterns to measure: linear, conv, attention, all, or names of operators [default: none]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub fusion_patterns: Option<Vec<Patterns>>,
    /// Dtypes: f32, bf16, f16 [default: f32 on a CPU; all on a GPU; with --quick on a GPU f32 and bf16, or f16 through
    /// Vulkan and Metal]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub dtypes: Option<Vec<Dtype>>,
    /// Print this profile, or with --registry the newest profile of this hardware, without measuring
    #[arg(long, value_name = "FILE")]
    pub show: Option<PathBuf>,
    /// Add the profile to this folder as DIR/HARDWARE/TIME.json; existing files are never replaced
    #[arg(long, value_name = "DIR")]
    pub registry: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArguments,
}

fn parse_positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("invalid value {text:?}: expected a number above 0"))
}

pub(super) fn calibrate(arguments: CalibrateArguments) -> Result<Exit, CliError> {
    let CalibrateArguments { show: shown, registry, hardware, peak_gflops, peak_bandwidth, output, run, .. } =
        &arguments;
    if let Some(wanted) = shown {
        return print_profile(wanted, registry.as_deref());
    }
    let changes_plan = arguments.quick
        || arguments.operations.is_some()
        || arguments.fusion_patterns.is_some()
        || arguments.dtypes.is_some();
    let entries = match &run.resume {
        Some(_) if changes_plan => {
            let why =
                "--resume continues the original plan: omit --quick, --operations, --fusion-patterns and --dtypes";
            return Err(CliError::Usage(why.into()));
        }
        Some(_) => Vec::new(),
        None => requested_entries(&arguments, run.overrides.cases.device)?,
    };
    let stated = StatedPeaks { gflops: *peak_gflops, gbps: *peak_bandwidth };
    let (hardware, output, registry) = (hardware.clone(), output.clone(), registry.clone());
    let request = Request { entries, ..Request::default() };
    let Some(mut finished) = execute(request, arguments.run)? else { return Ok(Exit::Success) };
    let profile = CalibrationProfile::from_journal(&read_journal(&finished.dir)?, &ProfileLabels { hardware, stated });
    if finished.format == RecordFormat::Table {
        finished.print(&format!("\n{}", escape_lines(&show(&profile))));
    }
    let exit = report_outcome(&finished.outcome, finished.strict);
    let profile_path = finished.dir.join("profile.json");
    for path in [Some(profile_path.clone()), output].into_iter().flatten() {
        profile.write(&path)?;
        log_line!("wrote {}", path.display());
    }
    index::add(&finished.dir, &[profile_path])?;
    // An interrupted calibration can be resumed; the registry accepts only complete ones.
    if let Some(registry) = registry.filter(|_| !finished.outcome.interrupted) {
        log_line!("wrote {}", add(&registry, &profile)?.display());
    }
    finished.finish(exit)
}

/// Builds the entries that the options request.
fn requested_entries(arguments: &CalibrateArguments, device: Option<DeviceSelection>) -> Result<Vec<Entry>, CliError> {
    let machine = calibration_target(&device.unwrap_or_default().find().map_err(RunError::from)?);
    let operations = match &arguments.operations {
        Some(words) => words.iter().flat_map(|word| word.0.to_vec()).collect(),
        None => all_operations(),
    };
    let mut patterns = Vec::new();
    for pattern in arguments.fusion_patterns.iter().flatten().flat_map(|word| &word.0) {
        if !patterns.contains(pattern) {
            patterns.push(*pattern);
        }
    }
    let dtypes = arguments.dtypes.clone();
    let entries = entries(&machine, &CalibrationOptions { quick: arguments.quick, operations, patterns, dtypes });
    if entries.is_empty() {
        return Err(CliError::Usage("--operations: none of these can be measured on this device".into()));
    }
    Ok(entries)
}

fn calibration_target(found: &DiscoveredDevice) -> CalibrationTarget {
    let free_bytes = platforms::for_device(found.device).memory().and_then(|_| available_memory());
    CalibrationTarget { device: found.device, software: found.software, cache_bytes: found.cache_bytes(), free_bytes }
}

/// Prints the profile in a file, or the newest profile of a hardware in the registry.
fn print_profile(wanted: &Path, registry: Option<&Path>) -> Result<Exit, CliError> {
    let path = match registry.filter(|_| !wanted.is_file()) {
        Some(registry) => latest(registry, &wanted.to_string_lossy()).map_err(CliError::Usage)?,
        None => wanted.to_owned(),
    };
    print(&show(&CalibrationProfile::read(&path).map_err(CliError::Usage)?))?;
    Ok(Exit::Success)
}
