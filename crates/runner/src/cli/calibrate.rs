//! `calorimeter calibrate`.

use super::error::CliError;
use super::options::RunArguments;
use super::run::{execute, report};
use crate::Exit;
use crate::calibration::{
    Labels, Machine, Operations, Patterns, Profile, Stated, Wish, entries, every_operation, keep, latest, measured,
    show,
};
use crate::devices::{self, DiscoveredDevice};
use crate::entries::{Entry, Wanted};
use crate::host::available_memory;
use crate::platforms;
use crate::print::print;
use crate::progress::Format;
use crate::run::{Request, RunError};
use crate::tell::tell;
use calorimeter_recipes::Dtype;
use calorimeter_sinks::index;
use clap::Args;
use std::path::{Path, PathBuf};

/// Measure what a device reaches, and write its profile.
///
/// Copies and sums of arrays, products of vectors and matrices, launches and the levels of memory are measured as any run
/// measures its cases; with --fusion-patterns also what fusing is worth. The profile, DIR/profile.json in the folder of the
/// run, follows from the run's journal alone.
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
    /// A first look: fewer and smaller sizes, two types on a GPU, one implementation of operations, each pattern once, shorter
    /// measurements
    #[arg(long)]
    pub quick: bool,
    /// What to measure: matmul, memory (or stream), stream_copy, stream_scale, stream_add, stream_triad, blas, blas1, blas2,
    /// blas3, dot, axpy, gemv, gemm, cache, latency, transfer [default: all of it]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub operations: Option<Vec<Operations>>,
    /// Which fusion patterns to measure: linear, conv, attention, all, or operators by name [default: none]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub fusion_patterns: Option<Vec<Patterns>>,
    /// Types of numbers: f32, bf16, f16 [default: f32 on a processor; on a GPU all, with --quick f32 and bf16,
    /// f16 through Vulkan and Metal]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub dtypes: Option<Vec<Dtype>>,
    /// Print this profile, or with --registry the last one of this hardware, and measure nothing
    #[arg(long, value_name = "FILE")]
    pub show: Option<PathBuf>,
    /// Add the profile to this folder, as DIR/HARDWARE/TIME.json; nothing there is ever replaced
    #[arg(long, value_name = "DIR")]
    pub registry: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArguments,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("{text:?} is no number above 0"))
}

pub fn calibrate(arguments: CalibrateArguments) -> Result<Exit, CliError> {
    let CalibrateArguments { show: shown, registry, hardware, peak_gflops, peak_bandwidth, output, run, .. } =
        &arguments;
    if let Some(wanted) = shown {
        return printed(wanted, registry.as_deref());
    }
    let plans = arguments.quick
        || arguments.operations.is_some()
        || arguments.fusion_patterns.is_some()
        || arguments.dtypes.is_some();
    let entries = match &run.resume {
        Some(_) if plans => {
            let why = "--resume goes on with what was asked for then: leave operations, patterns and dtypes out";
            return Err(CliError::Usage(why.into()));
        }
        Some(_) => Vec::new(),
        None => asked(&arguments, run.overrides.cases.device)?,
    };
    let stated = Stated { gflops: *peak_gflops, gbps: *peak_bandwidth };
    let (hardware, output, registry) = (hardware.clone(), output.clone(), registry.clone());
    let request = Request { entries, ..Request::default() };
    let Some(mut finished) = execute(request, arguments.run)? else { return Ok(Exit::Fine) };
    let profile = Profile::of(&measured(&finished.dir)?, &Labels { hardware, stated });
    if finished.format == Format::Table {
        finished.print(&format!("\n{}", show(&profile)));
    }
    let exit = report(&finished.outcome, finished.strict);
    let kept = finished.dir.join("profile.json");
    for path in [Some(kept.clone()), output].into_iter().flatten() {
        profile.write(&path)?;
        tell!("wrote {}", path.display());
    }
    index::add(&finished.dir, &[kept])?;
    // What was cut short can be gone on with; the registry takes whole calibrations.
    if let Some(registry) = registry.filter(|_| !finished.outcome.interrupted) {
        tell!("wrote {}", keep(&registry, &profile)?.display());
    }
    finished.end(exit)
}

/// What the options ask for.
fn asked(arguments: &CalibrateArguments, device: Option<Wanted>) -> Result<Vec<Entry>, CliError> {
    let device = devices::here().choose(device.unwrap_or_default()).map_err(RunError::from)?;
    let machine = machine(&devices::present(device).map_err(RunError::from)?);
    let operations = match &arguments.operations {
        Some(words) => words.iter().flat_map(|word| word.0.to_vec()).collect(),
        None => every_operation(),
    };
    let mut patterns = Vec::new();
    for pattern in arguments.fusion_patterns.iter().flatten().flat_map(|word| &word.0) {
        if !patterns.contains(pattern) {
            patterns.push(*pattern);
        }
    }
    let dtypes = arguments.dtypes.clone();
    let entries = entries(&machine, &Wish { quick: arguments.quick, operations, patterns, dtypes });
    if entries.is_empty() {
        return Err(CliError::Usage("--operations: nothing of this can be measured in this version".into()));
    }
    Ok(entries)
}

fn machine(found: &DiscoveredDevice) -> Machine {
    // The mock device holds no arrays.
    let free_bytes = if platforms::of(found.device).is_scripted() { None } else { available_memory() };
    Machine { device: found.device, software: found.software, cache_bytes: found.cache_bytes(), free_bytes }
}

/// Prints a profile by its file, or the last one of a hardware.
fn printed(wanted: &Path, registry: Option<&Path>) -> Result<Exit, CliError> {
    let path = match registry.filter(|_| !wanted.is_file()) {
        Some(registry) => latest(registry, &wanted.to_string_lossy()).map_err(CliError::Usage)?,
        None => wanted.to_owned(),
    };
    print(&show(&Profile::read(&path).map_err(CliError::Usage)?))?;
    Ok(Exit::Fine)
}
