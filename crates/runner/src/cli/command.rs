//! Every command.

use super::calibrate::CalibrateArguments;
use super::compare::CompareArguments;
use super::merge::{MergeArguments, RenderArguments};
use super::options::{
    AccuracyArguments, CiArguments, DoctorArguments, NoiseArguments, OpsArguments, RunFilesArguments, SuiteArguments,
};
use super::report::ReportArguments;
use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Measures what quantisation, fusion and better kernels really buy on this machine.
#[derive(Debug, Parser)]
#[command(name = "calorimeter", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure the cases of configuration files
    Run(RunFilesArguments),
    /// Measure the op suite: normalisations, activations, losses
    Ops(OpsArguments),
    /// Measure the GEMM suite: matrix products, quantisation, and what runs beside them
    Gemm(SuiteArguments),
    /// Measure what fusing patterns of operators buys
    Fusion(SuiteArguments),
    /// Compare the accuracy of recipes, without measuring times
    Accuracy(AccuracyArguments),
    /// Measure what a device reaches, and write its profile
    Calibrate(CalibrateArguments),
    /// Measure a configuration file and write the dashboard's JSON
    Ci(CiArguments),
    /// Compare two runs, and fail where something became slower; or two machines by their profiles
    Compare(CompareArguments),
    /// Make one page of one run or several, to look at and to send on
    Report(ReportArguments),
    /// Join the parts of a run that `run --shard` measured
    Merge(MergeArguments),
    /// Write the files that are derived from a run's journal anew
    Render(RenderArguments),
    /// List what configuration files can name
    List {
        /// What to list; everything without it
        #[arg(value_enum)]
        what: Option<Listing>,
    },
    /// Compare computations with themselves, and keep the margin that follows for later verdicts
    Noise(NoiseArguments),
    /// Say which devices, libraries and clocks are here, and how to get what is missing
    Doctor(DoctorArguments),
    /// Print the JSON Schema of configuration files, for editors
    Schema,
    /// Print a completion script
    Completions {
        /// The shell to complete in
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
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
    /// Ways to quantise
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
