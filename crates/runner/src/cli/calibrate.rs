//! `calorimeter calibrate`.

use super::options::Sitting;
use super::run::{report, sit};
use super::{CliError, print};
use crate::Exit;
use crate::cache;
use crate::calibration::{
    Families, Labels, Machine, Operations, Profile, Stated, Wish, default_dtypes, every_operation, keep, latest, show,
    text,
};
use crate::config::{Source, Wanted};
use crate::devices::{self, Found};
use crate::environment::available_memory;
use crate::peaks;
use crate::progress::Format;
use crate::run::RunError;
use calorimeter_recipes::Dtype;
use calorimeter_sinks::journal;
use calorimeter_zoo::Device;
use clap::Args;
use std::path::{Path, PathBuf};

/// Measure what a device reaches, and write its profile.
///
/// Copies and sums of arrays, products of vectors and matrices, launches and the levels of memory are measured as any run
/// measures its cases; with --fusion-patterns also what fusing is worth. The profile, DIR/profile.json in the folder of the
/// run, follows from the run's journal alone. Peaks that are higher than those known so far are kept for the roofline of
/// later runs.
#[derive(Debug, Args)]
pub struct CalibrateArguments {
    /// What to call the hardware [default: the device's name]
    #[arg(long, value_name = "NAME")]
    pub hardware: Option<String>,
    /// The peak that somebody states for f32 products, in GFLOP/s; compared with the measured one, never used for it
    #[arg(long, value_name = "X", value_parser = positive)]
    pub peak_gflops: Option<f64>,
    /// The peak that somebody states for memory, in GB/s; compared with the measured one, never used for it
    #[arg(long, value_name = "Y", value_parser = positive)]
    pub peak_bandwidth: Option<f64>,
    /// Write the profile to this file as well
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Fewer and smaller sizes, shorter measurements
    #[arg(long)]
    pub quick: bool,
    /// What to measure: matmul, memory (or stream), stream_copy, stream_scale, stream_add, stream_triad, blas, blas1, blas2,
    /// blas3, dot, axpy, gemv, gemm, cache, latency, transfer [default: all of it]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub operations: Option<Vec<Operations>>,
    /// Which fusion patterns to measure: linear, conv, attention, all [default: none]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub fusion_patterns: Option<Vec<Families>>,
    /// Types of numbers: f32, bf16, f16 [default: f32 on a processor, all on a GPU]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub dtypes: Option<Vec<Dtype>>,
    /// Print this profile, or with --registry the last one of this hardware, and measure nothing
    #[arg(long, value_name = "FILE")]
    pub show: Option<PathBuf>,
    /// Add the profile to this folder, as DIR/HARDWARE/TIME.json; nothing there is ever replaced
    #[arg(long, value_name = "DIR")]
    pub registry: Option<PathBuf>,
    #[command(flatten)]
    pub sitting: Sitting,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("{text:?} is no number above 0"))
}

pub fn calibrate(arguments: CalibrateArguments) -> Result<Exit, CliError> {
    let CalibrateArguments { show: shown, registry, hardware, peak_gflops, peak_bandwidth, output, sitting, .. } =
        &arguments;
    if let Some(wanted) = shown {
        return printed(wanted, registry.as_deref());
    }
    let plans = arguments.quick
        || arguments.operations.is_some()
        || arguments.fusion_patterns.is_some()
        || arguments.dtypes.is_some();
    let sources = match &sitting.resume {
        Some(_) if plans => {
            let why = "--resume goes on with what was asked for then: leave operations, patterns and dtypes out";
            return Err(CliError::Usage(why.into()));
        }
        Some(_) => Vec::new(),
        None => vec![source(&arguments, sitting.overrides.cases.device)?],
    };
    let stated = Stated { gflops: *peak_gflops, gbps: *peak_bandwidth };
    let (hardware, output, registry) = (hardware.clone(), output.clone(), registry.clone());
    let Some(sat) = sit(sources, arguments.sitting)? else { return Ok(Exit::Fine) };
    let profile = Profile::of(&journal::read(&sat.dir)?, &Labels { hardware, stated });
    if sat.format == Format::Table {
        print(&format!("\n{}", show(&profile)));
    }
    let exit = report(&sat.outcome, sat.strict);
    raise(&profile, sat.device);
    for path in [Some(sat.dir.join("profile.json")), output].into_iter().flatten() {
        profile.write(&path)?;
        eprintln!("wrote {}", path.display());
    }
    // What was cut short can be gone on with; the registry takes whole calibrations.
    if let Some(registry) = registry.filter(|_| !sat.outcome.interrupted) {
        eprintln!("wrote {}", keep(&registry, &profile)?.display());
    }
    Ok(exit)
}

/// The plan that the options ask for.
fn source(arguments: &CalibrateArguments, device: Option<Wanted>) -> Result<Source, CliError> {
    let device = devices::resolve(device.unwrap_or_default()).map_err(RunError::from)?;
    let found = devices::present(device).map_err(RunError::from)?;
    let machine = machine(&found);
    let operations = match &arguments.operations {
        Some(words) => words.iter().flat_map(|word| word.0.to_vec()).collect(),
        None => every_operation(),
    };
    let families = arguments.fusion_patterns.iter().flatten().flat_map(|word| word.0.to_vec()).collect();
    let dtypes = arguments.dtypes.clone().unwrap_or_else(|| default_dtypes(&machine));
    let text = text(&machine, &Wish { quick: arguments.quick, operations, families, dtypes });
    let text =
        text.ok_or_else(|| CliError::Usage("--operations: nothing of this can be measured in this version".into()))?;
    Ok(Source { path: "calibration".into(), text })
}

fn machine(found: &Found) -> Machine {
    // The mock device holds no arrays.
    let free_bytes = if found.device == Device::Mock { None } else { available_memory() };
    Machine { device: found.device, software: found.software, cache_bytes: found.cache_bytes(), free_bytes }
}

/// Prints a profile by its file, or the last one of a hardware.
fn printed(wanted: &Path, registry: Option<&Path>) -> Result<Exit, CliError> {
    let path = match registry.filter(|_| !wanted.is_file()) {
        Some(registry) => latest(registry, &wanted.to_string_lossy()).map_err(CliError::Usage)?,
        None => wanted.to_owned(),
    };
    Ok(print(&show(&Profile::read(&path).map_err(CliError::Usage)?)))
}

/// Lets later runs know of peaks that are higher than those they know.
fn raise(profile: &Profile, device: Option<Device>) {
    let found = device.and_then(|device| devices::present(device).ok());
    let Some((found, kept)) = found.zip(cache::folder("peaks")) else { return };
    let reached = profile.peaks_by_operations();
    let reached: Vec<(&str, f64)> = reached.iter().map(|(what, figure)| (what.as_str(), *figure)).collect();
    for what in peaks::raise(&kept, &found, &reached) {
        eprintln!("the peak of {what} was raised for the roofline of later runs");
    }
}
