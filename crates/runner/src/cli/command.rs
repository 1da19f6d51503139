//! Every command.

use super::calibrate::CalibrateArguments;
use super::compare::CompareArguments;
use super::merge::{MergeArguments, RenderArguments};
use super::options::{
    AccuracyArguments, CiArguments, DoctorArguments, NoiseArguments, OpsArguments, RunFilesArguments, SuiteArguments,
};
use super::peaks::PeaksArguments;
use super::report::ReportArguments;
use super::time::TimeArguments;
use super::watch::WatchArguments;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Measures what quantization, fusion and better kernels really buy on this machine.
#[derive(Debug, Parser)]
#[command(name = "calorimeter", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// Where a command has no line here, what it takes says what it does, in short and at length.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(RunFilesArguments),
    Ops(OpsArguments),
    /// Measure the GEMM suite: matrix products, quantization, and what runs beside them
    Gemm(SuiteArguments),
    /// Measure what fusing patterns of operators buys
    Fusion(SuiteArguments),
    Time(Box<TimeArguments>),
    Accuracy(AccuracyArguments),
    Calibrate(CalibrateArguments),
    /// Measure a configuration file and write the dashboard's JSON
    Ci(CiArguments),
    Compare(CompareArguments),
    Watch(WatchArguments),
    Report(ReportArguments),
    Merge(MergeArguments),
    Render(RenderArguments),
    /// List what configuration files can name
    List {
        /// What to list; everything without it
        #[arg(value_enum)]
        what: Option<Listing>,
    },
    Noise(NoiseArguments),
    Peaks(PeaksArguments),
    Doctor(DoctorArguments),
    /// Print the JSON Schema of configuration files, for editors
    Schema,
    /// Print a completion script, for example for `source <(calorimeter completions bash)`
    Completions {
        /// The shell to complete in
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program, or of one of its commands
    Man {
        /// The command
        #[arg(value_name = "COMMAND")]
        of: Option<String>,
    },
    /// Write the parts of the book that follow from the code into its pages
    #[command(hide = true)]
    Docs {
        /// The folder of the pages
        #[arg(default_value = "docs/src")]
        dir: PathBuf,
        /// Change nothing, and fail where a page is stale
        #[arg(long)]
        check: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listing {
    /// Ways to quantize
    Recipes,
    /// Computations that recipes apply to
    Models,
    /// Computations of the suites
    Operators,
    /// Shape generators with their parameters
    Shapes,
    /// Whose kernels run
    Implementations,
    /// Devices of this machine
    Devices,
}
