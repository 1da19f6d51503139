//! Commands of the program.

use super::calibrate::CalibrateArguments;
use super::compare::CompareArguments;
use super::flashinfer::FlashinferArguments;
use super::init::InitArguments;
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

/// Measures the effect of quantization, operator fusion and better kernels on this machine
#[derive(Debug, Parser)]
#[command(name = "calorimeter", version, max_term_width = 100, arg_required_else_help = true)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands. A variant without a comment takes its help text from its arguments.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Run(RunFilesArguments),
    Init(InitArguments),
    Ops(OpsArguments),
    /// Measure the GEMM suite: matmuls, quantization, and the operators around them
    Gemm(SuiteArguments),
    /// Measure the speed-up of fused operator patterns
    Fusion(SuiteArguments),
    Time(Box<TimeArguments>),
    Flashinfer(Box<FlashinferArguments>),
    Accuracy(AccuracyArguments),
    Calibrate(CalibrateArguments),
    /// Measure a configuration file and write JSON for the PyTorch benchmark dashboard
    Ci(CiArguments),
    Compare(CompareArguments),
    Watch(WatchArguments),
    Report(ReportArguments),
    Merge(MergeArguments),
    Render(RenderArguments),
    /// List the names that configuration files accept
    List {
        /// Kind of names [default: counts and examples of all kinds]
        #[arg(value_enum)]
        what: Option<Listing>,
    },
    Noise(NoiseArguments),
    Peaks(PeaksArguments),
    Doctor(DoctorArguments),
    /// Print the JSON Schema of configuration files, for editors
    Schema,
    /// Print a completion script; in bash, load it with `source <(calorimeter completions bash)`
    Completions {
        /// Shell to generate for
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page of the program or of one of its commands
    Man {
        /// Command to describe [default: the program]
        #[arg(value_name = "COMMAND")]
        command: Option<String>,
    },
    /// Update the generated sections of the book
    #[command(hide = true)]
    Docs {
        /// Folder with the pages of the book
        #[arg(default_value = "docs/src")]
        dir: PathBuf,
        /// Fail if a page is out of date, and change nothing
        #[arg(long)]
        check: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Listing {
    /// Quantization recipes
    Recipes,
    /// Models, to which recipes apply
    Models,
    /// Operators of the suites
    Operators,
    /// Shape generators and their parameters
    Shapes,
    /// Implementations
    Implementations,
    /// Kernels of the linear layer of each recipe, by implementation, device and number of input rows
    Kernels,
    /// Devices of this machine
    Devices,
}
