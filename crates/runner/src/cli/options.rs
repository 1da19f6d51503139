//! Arguments of the commands.

use crate::entries::{
    Autotune, DeviceSelection, Fraction, HumanDuration, MAX_LAUNCHES, Overrides, ScaleFactor, Shard, Size, Timing,
};
use crate::progress::RecordFormat;
use calorimeter_case::{Implementation, Regime};
use calorimeter_compare::SavedBaseline;
use calorimeter_recipes::{Dtype, Element, Recipe};
use calorimeter_shapes::{Shape, ShapeError, ShapeSource};
use calorimeter_timing::telemetry::LockedClock;
use calorimeter_zoo::operators::presets::Preset;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub(super) const EXIT_CODES: &str = "Exit codes:
  0    every case that this machine supports was measured
  2    invalid usage, configuration or environment, or a filter without matches
  3    an output was wrong
  4    --strict: an interval is wider than requested
  5    a case failed, crashed, timed out, or exceeded the peaks of the device
  130  interrupted; finished cases are saved, continue with --resume";

/// Measure the cases of configuration files.
///
/// Every case ends as one record: a time, or the reason why there is none. Records are appended to DIR/journal.jsonl as
/// cases finish. At the end, results.csv and a CSV in the format of torchao are written from it; builds with the feature
/// `tables` also write results.parquet.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct RunFilesArguments {
    /// Configuration files
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Configuration file; same as FILE, for compatibility with torchao's runner
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    #[command(flatten)]
    pub run: RunArguments,
    // Last, because its heading applies to all options that follow.
    #[command(flatten)]
    pub models: ModelArguments,
}

/// Output, display and overrides of a run.
#[derive(Debug, Args)]
pub(super) struct RunArguments {
    /// Output folder [default: a new folder in the output_dir of the configuration]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Resume the run in this folder; without FILE, the configuration is read from its journal
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub resume: Option<PathBuf>,
    /// Also save the results under this name, for `calorimeter compare NAME`
    #[arg(long, value_name = "NAME")]
    pub save_baseline: Option<SavedBaseline>,
    /// Print the plan without opening a device
    #[arg(long)]
    pub dry_run: bool,
    /// Format of the records on standard output
    #[arg(long, value_enum, default_value = "table")]
    pub format: RecordFormat,
    /// Exit with code 4 if an interval is wider than requested
    #[arg(long)]
    pub strict: bool,
    /// Print the wall time of the run by stage
    #[arg(long)]
    pub timings: bool,
    #[command(flatten)]
    pub color: ColorArguments,
    #[command(flatten)]
    pub overrides: OverrideArguments,
}

/// Operators at preset sizes. Records, files, options and exit codes are the same as for `run`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct SuiteArguments {
    /// Operators to measure [default: all of the suite; see `list operators`]
    #[arg(long, visible_alias = "patterns", value_name = "NAME,…", value_delimiter = ',')]
    pub ops: Option<Vec<String>>,
    /// Size preset: quick, guide, full or llm [default: quick]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<Preset>,
    /// Dtypes of the inputs, e.g. f32,bf16 [default: depends on the operator]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub dtypes: Option<Vec<Element>>,
    /// Sizes along an axis instead of the preset's, e.g. m=1024,4096
    #[arg(long, value_name = "AXIS=N,…")]
    pub axis: Vec<AxisChoice>,
    /// Also write the results as JSON: a flat list, or for `fusion` a profile per pattern and size
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write the tables and the metrics_report.jsonl of accelerator-microbenchmarks to this folder; with --out, to
    /// a folder of this name inside the output folder
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(utf8_path))]
    pub export: Option<String>,
    #[command(flatten)]
    pub run: RunArguments,
}

/// Measure the op suite: normalizations, activations, losses and fused combinations, in every implementation.
///
/// Operators at preset sizes of batch x sequence x dimension. Records, files, options and exit codes are the same as
/// for `run`.
#[derive(Debug, Args)]
pub(super) struct OpsArguments {
    /// Batch sizes instead of the preset's
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub batch_sizes: Option<Vec<u64>>,
    /// Sequence lengths instead of the preset's
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub sequence_lengths: Option<Vec<u64>>,
    /// Row lengths instead of the preset's
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub dimensions: Option<Vec<u64>>,
    #[command(flatten)]
    pub suite: SuiteArguments,
}

/// Values along an axis, as in `--axis m=1024,4096`.
#[derive(Debug, Clone)]
pub(super) struct AxisChoice {
    pub name: String,
    pub values: Vec<u64>,
}

impl FromStr for AxisChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("invalid axis {text:?}: expected AXIS=N,… with values above 0, e.g. m=1024,4096");
        let (name, values) = text.split_once('=').ok_or_else(invalid)?;
        let values: Result<Vec<u64>, _> = values.split(',').map(str::parse).collect();
        let values = values.map_err(|_| invalid())?;
        if name.is_empty() || values.contains(&0) { Err(invalid()) } else { Ok(Self { name: name.into(), values }) }
    }
}

/// Checks that a path is valid UTF-8: records and journals store it as text.
fn utf8_path(path: PathBuf) -> Result<String, &'static str> {
    path.into_os_string().into_string().map_err(|_| "expected a path in UTF-8, because results record it")
}

/// Compare the accuracy of recipes without measuring times.
///
/// Every case is opened and checked, but not timed. The table has one row per recipe. Its columns are the SQNR in dB
/// against the unquantized model for each model, the size of the weights relative to the baseline, and the time that
/// the host took to quantize them. Records, files and exit codes are the same as for `run`.
#[derive(Debug, Args)]
pub(super) struct AccuracyArguments {
    /// Configuration files [default: typical recipes in every kind of model at one small shape]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Output folder [default: a new folder in the output_dir of the configuration]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the plan without opening a device
    #[arg(long)]
    pub dry_run: bool,
    /// Output on standard output: the table at the end, or records as cases finish
    #[arg(long, value_enum, default_value = "table")]
    pub format: RecordFormat,
    #[command(flatten)]
    pub color: ColorArguments,
    #[command(flatten)]
    pub models: ModelArguments,
    #[command(flatten)]
    pub overrides: CaseArguments,
}

#[derive(Debug, Args)]
pub(super) struct CiArguments {
    /// Configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Output file for the dashboard's JSON
    #[arg(long, value_name = "FILE", default_value = "benchmark_results.json")]
    pub output: PathBuf,
    /// Do not fail if the list of results is empty
    #[arg(long)]
    pub allow_empty: bool,
    /// Also write the times for github-action-benchmark, as customSmallerIsBetter
    #[arg(long, value_name = "FILE")]
    pub github_action_benchmark: Option<PathBuf>,
    /// Also write times and speed-ups in Bencher's metric format
    #[arg(long, value_name = "FILE")]
    pub bencher: Option<PathBuf>,
    /// Also write times and speed-ups in the OpenMetrics format, e.g. for Prometheus
    #[arg(long, value_name = "FILE")]
    pub openmetrics: Option<PathBuf>,
    #[command(flatten)]
    pub run: RunArguments,
    // Last, because its heading applies to all options that follow.
    #[command(flatten)]
    pub models: ModelArguments,
}

/// Measure the noise floor of a device by comparing computations with themselves.
///
/// Matmuls, additions of arrays and a training step are compared with identical copies of themselves, each round in a
/// new process (A/A tests). Every difference found is false: the share of such comparisons is the rate of false
/// verdicts. The spread of the ratios is the noise floor, below which this device cannot resolve differences. Twice the
/// noise floor is stored for 30 days as the minimum margin of verdicts on this device with this driver and clock
/// policy.
#[derive(Debug, Args)]
pub(super) struct NoiseArguments {
    /// Device: auto, cuda[:i], vulkan[:i], metal, wgpu, cpu
    #[arg(long, value_name = "DEVICE", env = "CALORIMETER_DEVICE", default_value = "auto")]
    pub device: DeviceSelection,
    /// Number of comparisons
    #[arg(long, value_name = "N", default_value = "40", value_parser = clap::value_parser!(u32).range(1..))]
    pub comparisons: u32,
    /// Only workloads whose id matches this regular expression; the margin is then not stored
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// Lock the device's clock during the comparisons, at its base clock or at MHZ; applies to runs with the same lock
    #[arg(long, value_name = "MHZ", num_args = 0..=1, require_equals = true, default_missing_value = "base")]
    pub lock_clocks: Option<LockedClock>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
}

/// Show devices, libraries and stopwatches, and how to install what is missing.
#[derive(Debug, Args)]
pub(super) struct DoctorArguments {
    /// Check the measurement itself on a device, with empty windows, known work and known differences; and check the
    /// settings of the machine
    #[arg(long)]
    pub deep: bool,
    /// Device for --deep: auto, cuda[:i], vulkan[:i], metal, wgpu, cpu, mock
    #[arg(long, value_name = "DEVICE", env = "CALORIMETER_DEVICE", default_value = "auto")]
    pub device: DeviceSelection,
    /// Output format of --deep
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
}

/// Output formats of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TextFormat {
    /// Plain text
    Text,
    /// JSON value
    Json,
}

/// Options that override the configuration files.
#[derive(Debug, Args)]
#[command(next_help_heading = "Overrides")]
pub struct OverrideArguments {
    #[command(flatten)]
    pub cases: CaseArguments,
    /// Stop a case when the half-width of its interval is at most this fraction of the median, e.g. 1%
    #[arg(long, value_name = "FRACTION")]
    pub precision: Option<Fraction>,
    /// Stop a case after this measuring time, e.g. 5s
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<HumanDuration>,
    /// Timing modes
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help = regimes_help())]
    pub regimes: Option<Vec<Regime>>,
    /// Autotuning: comma-separated words for where results are stored and how finely sizes are tuned, e.g. fresh,quick
    ///
    ///   cached: tune kernels that no earlier run on this device has tuned, and store the results (default)
    ///   fresh:  tune everything again, and store the results in the output folder
    ///   off:    never tune; skip cases whose kernels no earlier run has tuned
    ///   full:   tune each size separately (default); takes 3 to 23 s per matmul size on a GPU
    ///   quick:  tune once for all sizes within a factor of 2.5; the records say so
    #[arg(long, value_name = "WORD,…", default_value = "cached", verbatim_doc_comment)]
    pub autotune: Autotune,
    /// Write a trace of each case for ui.perfetto.dev, and show a table of its kernels
    #[arg(long)]
    pub profile: bool,
    /// Profile the memory of each case; write snapshots and a page
    #[arg(long)]
    pub memory: bool,
    /// Also time single launches, and report their 50th, 95th and 99th percentiles
    #[arg(long)]
    pub percentiles: bool,
    /// Measure each case in N fresh processes; intervals then include the variation between processes
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_LAUNCHES)))]
    pub launches: Option<u32>,
    /// Refuse to measure on a device that other processes use
    #[arg(long)]
    pub require_idle: bool,
    /// Lock the device's clock during the run, at its base clock or at MHZ; requires the permission to do so
    #[arg(long, value_name = "MHZ", num_args = 0..=1, require_equals = true, default_missing_value = "base")]
    pub lock_clocks: Option<LockedClock>,
    /// Measure only this part of the plan, e.g. 2/8; `calorimeter merge` joins the parts
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Set by the suite commands only.
    #[arg(skip)]
    pub export: Option<String>,
    /// Set by the commands that read files.
    #[arg(skip)]
    pub models: ModelArguments,
}

fn regimes_help() -> String {
    format!("Timing modes: {}", Regime::ALL.map(Regime::name).join(", "))
}

/// Options that override dtype, recipes and shapes of models.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Overrides")]
pub struct ModelArguments {
    /// Dtype of everything: f32, f16, bf16
    #[arg(long, value_name = "NAME")]
    pub dtype: Option<Dtype>,
    /// Recipes of the models, in addition to the baseline
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub recipes: Option<Vec<Recipe>>,
    /// Shapes of the models, as MxKxN such as 1x4096x4096, or names of shape generators
    #[arg(long, value_name = "SHAPE,…", value_delimiter = ',')]
    pub shapes: Option<Vec<ShapeChoice>>,
}

impl ModelArguments {
    /// Adds these options to `overrides`.
    pub fn apply_to(self, overrides: Overrides) -> Overrides {
        let Self { dtype, recipes, shapes } = self;
        let sizes = shapes.map(|shapes| shapes.into_iter().flat_map(|ShapeChoice(sizes)| sizes).collect());
        Overrides { dtype, recipes, sizes, ..overrides }
    }
}

/// Explicit shape, or all shapes of a generator.
#[derive(Debug, Clone)]
pub struct ShapeChoice(Vec<Size>);

impl FromStr for ShapeChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let [Ok(m), Ok(k), Ok(n)] = text.split('x').map(str::parse::<u64>).collect::<Vec<_>>()[..] {
            let shape = Shape::new(m, k, n).map_err(|error| error.to_string())?;
            return Ok(Self(vec![Size::custom(shape.into())]));
        }
        let source: ShapeSource = text
            .parse()
            .map_err(|error: ShapeError| format!("{error}; expected a generator or a shape MxKxN, e.g. 1x4096x4096"))?;
        let shapes = source.shapes().map_err(|error| error.to_string())?;
        Ok(Self(shapes.into_iter().map(Size::from).collect()))
    }
}

/// Options that select cases, independent of how they are measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Overrides")]
pub struct CaseArguments {
    /// Device of everything: auto, cuda[:i], vulkan[:i], metal, wgpu, cpu; with :all, as in cuda:all, all devices of
    /// the kind work concurrently
    #[arg(long, value_name = "DEVICE", env = "CALORIMETER_DEVICE")]
    pub device: Option<DeviceSelection>,
    /// Implementations: eager, fused, cube, native, or a name that a Python source registers
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = implementation)]
    pub implementations: Option<Vec<Implementation>>,
    /// Add the implementations of a Python file or a supported library, e.g. my_kernels.py or numpy; repeatable
    #[arg(long, value_name = "SOURCE", value_parser = python_source)]
    pub python: Vec<String>,
    /// Only cases whose id matches this regular expression, and their baselines
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// End a case that takes longer than this, including autotuning, e.g. 300s
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<HumanDuration>,
    /// Seed of inputs and weights
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Multiply all sizes by this factor, e.g. 1/64; sizes stay at least 1
    #[arg(long, value_name = "FACTOR")]
    pub scale_shapes: Option<ScaleFactor>,
}

/// Reads an implementation. The name is checked when the run is prepared, because a Python source may add names.
fn implementation(name: &str) -> Result<Implementation, Infallible> {
    Ok(Implementation::from_record(name))
}

/// Makes the path of a Python file absolute, so that a run can be resumed in another directory.
fn python_source(source: &str) -> Result<String, String> {
    if !source.ends_with(".py") {
        return Ok(source.to_owned());
    }
    let path = Path::new(source).canonicalize().map_err(|error| format!("cannot read {source}: {error}"))?;
    path.into_os_string().into_string().map_err(|_| "expected a path in UTF-8, because journals record it".into())
}

impl From<OverrideArguments> for Overrides {
    fn from(arguments: OverrideArguments) -> Self {
        let OverrideArguments {
            cases,
            precision,
            max_time,
            regimes,
            autotune,
            profile,
            memory,
            percentiles,
            launches,
            require_idle,
            lock_clocks,
            shard,
            export,
            models,
        } = arguments;
        let timing = Timing { precision, max_time, ..Timing::default() };
        let overrides = Self {
            timing,
            regimes,
            autotune,
            profile,
            memory,
            percentiles,
            launches,
            require_idle,
            lock_clocks,
            shard,
            export,
            ..cases.into()
        };
        models.apply_to(overrides)
    }
}

impl From<CaseArguments> for Overrides {
    fn from(arguments: CaseArguments) -> Self {
        let CaseArguments { device, implementations, python, filter, timeout, seed, scale_shapes } = arguments;
        Self { device, implementations, python, timeout, seed, filter, scale_shapes, ..Self::default() }
    }
}

#[derive(Debug, Args)]
pub(super) struct ColorArguments {
    /// When to color the table
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
