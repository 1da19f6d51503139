//! What each command can be told.

use crate::compare::Baseline;
use crate::entries::{Autotune, Factor, MOST_LAUNCHES, Overrides, Shard, Share, Size, Span, Timing, Wanted};
use crate::progress::Format;
use calorimeter_case::{Implementation, Regime};
use calorimeter_recipes::{Dtype, Element, Recipe};
use calorimeter_shapes::{Shape, ShapeError, ShapeSource};
use calorimeter_timing::telemetry::LockedClock;
use calorimeter_zoo::operators::presets::Preset;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::str::FromStr;

pub const EXIT_CODES: &str = "Exit codes:
  0    every case that can run here ran
  2    usage, configuration or environment, also a filter that matches nothing
  3    an output was wrong
  4    --strict: an interval stayed wider than asked for
  5    a case failed, crashed or timed out, or its figure was more than the device can do
  130  interrupted; what was measured is kept, go on with --resume";

/// Measure the cases of configuration files.
///
/// Every case ends as one record: measured, or the reason why not. Records go to DIR/journal.jsonl as they come; at the
/// end results.csv and results.parquet are made from it, and a CSV that scripts for torchao read.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct RunFilesArguments {
    /// Configuration files
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A configuration file, as torchao's runner takes it
    #[arg(long, value_name = "FILE")]
    pub config: Vec<PathBuf>,
    #[command(flatten)]
    pub models: ModelArguments,
    #[command(flatten)]
    pub run: RunArguments,
}

/// Where a run writes, what it shows, and what is set over its configuration.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Folder for the results [default: a new one under the file's output_dir]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Go on with the run in this folder; the configuration is taken from its journal if no FILE is given
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    pub resume: Option<PathBuf>,
    /// Keep the results under this name too, for `calorimeter compare NAME`
    #[arg(long, value_name = "NAME")]
    pub save_baseline: Option<Baseline>,
    /// Print what would be measured, and touch no device
    #[arg(long)]
    pub dry_run: bool,
    /// How to print records on standard output
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
    /// Fail with exit code 4 when an interval stays wider than asked for
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    pub color: ColorArguments,
    #[command(flatten)]
    pub overrides: OverrideArguments,
}

/// Operators at sizes by name. Each is a case like any other: with the same records, files, options and exit codes as `run`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct SuiteArguments {
    /// These operators [default: all of the suite; see `list operators`]
    #[arg(long, visible_alias = "patterns", value_name = "NAME,…", value_delimiter = ',')]
    pub ops: Option<Vec<String>>,
    /// Their sizes: quick, guide, full or llm [default: quick]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<Preset>,
    /// Number types of the inputs, e.g. f32,bf16 [default: the usual one of each operator]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub dtypes: Option<Vec<Element>>,
    /// Other sizes of an axis, e.g. m=1024,4096
    #[arg(long, value_name = "AXIS=N,…")]
    pub axis: Vec<AxisChoice>,
    /// Write the results as JSON too: a flat list, or for `fusion` what fusing each pattern does at each size
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Write the tables and the metrics_report.jsonl of accelerator-microbenchmarks to this folder too; with --out, to one of
    /// its name there
    #[arg(long, value_name = "DIR", value_parser = PathBufValueParser::new().try_map(text))]
    pub export: Option<String>,
    #[command(flatten)]
    pub run: RunArguments,
}

/// Measure the op suite: normalizations, activations, losses, and the same fused, by every implementation.
///
/// Operators at sizes by name, over batch x sequence x dimension. Each is a case like any other: with the same records,
/// files, options and exit codes as `run`.
#[derive(Debug, Args)]
pub struct OpsArguments {
    /// Other batch sizes
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub batch_sizes: Option<Vec<u64>>,
    /// Other sequence lengths
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub sequence_lengths: Option<Vec<u64>>,
    /// Other row lengths
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub dimensions: Option<Vec<u64>>,
    #[command(flatten)]
    pub suite: SuiteArguments,
}

/// An axis with the values that it takes.
#[derive(Debug, Clone)]
pub struct AxisChoice {
    pub name: String,
    pub values: Vec<u64>,
}

impl FromStr for AxisChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no axis with its values, such as m=1024,4096");
        let (name, values) = text.split_once('=').ok_or_else(wrong)?;
        let values: Result<Vec<u64>, _> = values.split(',').map(str::parse).collect();
        let values = values.map_err(|_| wrong())?;
        if name.is_empty() || values.contains(&0) { Err(wrong()) } else { Ok(Self { name: name.into(), values }) }
    }
}

/// A path that records and journals keep as text.
fn text(path: PathBuf) -> Result<String, &'static str> {
    path.into_os_string().into_string().map_err(|_| "it is no UTF-8, and results are to name it; choose another folder")
}

/// Compare the accuracy of recipes, without measuring times.
///
/// Every case is opened and checked, and none is timed. The table has a row for each recipe, and for each model the signal
/// to quantization noise in dB against the unquantized model; then the size of the weights as a share of the baseline's,
/// and the time in which the host quantized them. Records, files and exit codes are those of `run`.
#[derive(Debug, Args)]
pub struct AccuracyArguments {
    /// Configuration files [default: typical recipes in every kind of model at one small shape]
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Folder for the results [default: a new one under the file's output_dir]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print what would be checked, and touch no device
    #[arg(long)]
    pub dry_run: bool,
    /// What to print on standard output: the table at the end, or records as they come
    #[arg(long, value_enum, default_value = "table")]
    pub format: Format,
    #[command(flatten)]
    pub color: ColorArguments,
    #[command(flatten)]
    pub models: ModelArguments,
    #[command(flatten)]
    pub overrides: CaseArguments,
}

#[derive(Debug, Args)]
pub struct CiArguments {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Where the dashboard's JSON goes
    #[arg(long, value_name = "FILE", default_value = "benchmark_results.json")]
    pub output: PathBuf,
    /// A list without entries is no error
    #[arg(long)]
    pub allow_empty: bool,
    /// Write each case's time for github-action-benchmark too, as customSmallerIsBetter
    #[arg(long, value_name = "FILE")]
    pub github_action_benchmark: Option<PathBuf>,
    /// Write times and speed-ups in Bencher's metric format too
    #[arg(long, value_name = "FILE")]
    pub bencher: Option<PathBuf>,
    /// Write times and speed-ups as OpenMetrics too, for Prometheus and its like
    #[arg(long, value_name = "FILE")]
    pub openmetrics: Option<PathBuf>,
    #[command(flatten)]
    pub models: ModelArguments,
    #[command(flatten)]
    pub run: RunArguments,
}

/// Compare computations with themselves, and keep the margin that follows for later verdicts.
///
/// Matrix products, sums of arrays and a step of training are measured beside their twins, again and again, each round in a
/// new process. No difference is real: the share of comparisons that found one is the rate of false verdicts, and the spread
/// of the ratios is the floor below which this device tells nothing apart. Twice the floor is kept for 30 days as the least
/// margin of verdicts on this device, under this driver and policy of clocks.
#[derive(Debug, Args)]
pub struct NoiseArguments {
    /// Where: auto, cuda[:i], vulkan[:i], metal, wgpu, cpu
    #[arg(long, value_name = "DEVICE", env = "CALORIMETER_DEVICE", default_value = "auto")]
    pub device: Wanted,
    /// How many comparisons
    #[arg(long, value_name = "N", default_value = "40", value_parser = clap::value_parser!(u32).range(1..))]
    pub comparisons: u32,
    /// Only workloads whose id matches this regular expression; no margin is kept then
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// Lock the device's clock meanwhile, at its base clock or at so many MHz: for verdicts of runs that do
    #[arg(long, value_name = "MHZ", num_args = 0..=1, require_equals = true, default_missing_value = "base")]
    pub lock_clocks: Option<LockedClock>,
    /// How to print the figures
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
}

/// Say which devices, libraries and clocks are here, and how to get what is missing.
#[derive(Debug, Args)]
pub struct DoctorArguments {
    /// Let a device test the measuring itself, with nothing, known work and known differences, and look at how the machine is
    /// set up
    #[arg(long)]
    pub deep: bool,
    /// Where --deep tests: auto, cuda[:i], vulkan[:i], metal, wgpu, cpu, mock
    #[arg(long, value_name = "DEVICE", env = "CALORIMETER_DEVICE", default_value = "auto")]
    pub device: Wanted,
    /// How to print what --deep found
    #[arg(long, value_enum, default_value = "text")]
    pub format: TextFormat,
}

/// How a report is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TextFormat {
    /// For people
    Text,
    /// One JSON value
    Json,
}

/// What the command line sets over every file.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over the files")]
pub struct OverrideArguments {
    #[command(flatten)]
    pub cases: CaseArguments,
    /// Stop a case when its interval is this narrow, e.g. 1%
    #[arg(long, value_name = "SHARE")]
    pub precision: Option<Share>,
    /// Stop a case after measuring it for this long, e.g. 5s
    #[arg(long, value_name = "TIME")]
    pub max_time: Option<Span>,
    /// What times mean.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help = regimes())]
    pub regimes: Option<Vec<Regime>>,
    /// What becomes of tuned kernels, and how finely sizes are told apart: words joined by commas, as in `fresh,quick`.
    ///
    /// cached: tune what no earlier run on this device has tuned, and keep it for later ones (the default).
    /// fresh: tune everything anew, into the run's own folder.
    /// off: never tune; a case whose kernels no earlier run has tuned is skipped.
    /// full: tune each size by itself (the default), 3 to 23 s for a size of a product on a GPU.
    /// quick: sizes within a factor of 2.5 share what was tuned for the first of them; the records say so.
    #[arg(long, value_name = "WORD,…", default_value = "cached", verbatim_doc_comment)]
    pub autotune: Autotune,
    /// Write a trace of each case for ui.perfetto.dev, and show the table of its kernels
    #[arg(long)]
    pub profile: bool,
    /// Follow the memory of each case; write snapshots and a page
    #[arg(long)]
    pub memory: bool,
    /// Time single launches too, for their 50th, 95th and 99th percentile
    #[arg(long)]
    pub percentiles: bool,
    /// Measure each case in so many fresh processes; the intervals then say what the next process would find
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_LAUNCHES)))]
    pub launches: Option<u32>,
    /// Measure nothing on a device that other processes use
    #[arg(long)]
    pub require_idle: bool,
    /// Lock the device's clock while the run lasts, at its base clock or at so many MHz; that takes the right to
    #[arg(long, value_name = "MHZ", num_args = 0..=1, require_equals = true, default_missing_value = "base")]
    pub lock_clocks: Option<LockedClock>,
    /// Measure this part of the plan alone, e.g. 2/8; `calorimeter merge` joins the parts
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Given to the suites alone.
    #[arg(skip)]
    pub export: Option<String>,
    /// Given where files are.
    #[arg(skip)]
    pub models: ModelArguments,
}

fn regimes() -> String {
    format!("What times mean: {}", Regime::ALL.map(Regime::name).join(", "))
}

/// What models are measured under, instead of what files say.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Over the files")]
pub struct ModelArguments {
    /// Run everything in this type of numbers: f32, f16, bf16
    #[arg(long, value_name = "NAME")]
    pub dtype: Option<Dtype>,
    /// Run models under these recipes, and the baseline
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub recipes: Option<Vec<Recipe>>,
    /// Run models at these shapes, as MxKxN such as 1x4096x4096, or by the name of a generator
    #[arg(long, value_name = "SHAPE,…", value_delimiter = ',')]
    pub shapes: Option<Vec<ShapeChoice>>,
}

impl ModelArguments {
    /// The same over other options.
    pub fn over(self, overrides: Overrides) -> Overrides {
        let Self { dtype, recipes, shapes } = self;
        let sizes = shapes.map(|shapes| shapes.into_iter().flat_map(|ShapeChoice(sizes)| sizes).collect());
        Overrides { dtype, recipes, sizes, ..overrides }
    }
}

/// One shape, or those of a generator.
#[derive(Debug, Clone)]
pub struct ShapeChoice(Vec<Size>);

impl FromStr for ShapeChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let [Ok(m), Ok(k), Ok(n)] = text.split('x').map(str::parse::<u64>).collect::<Vec<_>>()[..] {
            let shape = Shape::new(m, k, n).map_err(|error| error.to_string())?;
            return Ok(Self(vec![Size::custom(shape.into())]));
        }
        let source: ShapeSource =
            text.parse().map_err(|error: ShapeError| format!("{error}; or write a shape, as 1x4096x4096"))?;
        let shapes = source.shapes().map_err(|error| error.to_string())?;
        Ok(Self(shapes.into_iter().map(Size::from).collect()))
    }
}

/// The part of it that says which cases there are, however they are measured.
#[derive(Debug, Args)]
#[command(next_help_heading = "Over the files")]
pub struct CaseArguments {
    /// Run everything on this device: auto, cuda[:i], vulkan[:i], metal, wgpu, cpu; with :all, as in cuda:all, on all of a
    /// kind at the same time
    #[arg(long, value_name = "DEVICE", env = "CALORIMETER_DEVICE")]
    pub device: Option<Wanted>,
    /// Run these implementations: eager, fused, cube, native
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub implementations: Option<Vec<Implementation>>,
    /// Only cases whose id matches this regular expression, and the baselines they are compared with
    #[arg(long, value_name = "REGEX")]
    pub filter: Option<String>,
    /// End a case that takes longer than this, tuning included, e.g. 300s
    #[arg(long, value_name = "TIME")]
    pub timeout: Option<Span>,
    /// Seed of inputs and weights
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Multiply every size by this, e.g. 1/64, rounded to at least 1
    #[arg(long, value_name = "FACTOR")]
    pub scale_shapes: Option<Factor>,
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
        models.over(overrides)
    }
}

impl From<CaseArguments> for Overrides {
    fn from(arguments: CaseArguments) -> Self {
        let CaseArguments { device, implementations, filter, timeout, seed, scale_shapes } = arguments;
        Self { device, implementations, timeout, seed, filter, scale_shapes, ..Self::default() }
    }
}

#[derive(Debug, Args)]
pub struct ColorArguments {
    /// When to color the table
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    pub color: ColorChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
