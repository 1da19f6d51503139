//! `calorimeter flashinfer`.

use super::error::CliError;
use super::options::{EXIT_CODES, RunArguments};
use super::run::execute;
use crate::Exit;
use crate::dialects::flashinfer_bench::{DatasetOptions, entries};
use crate::run::{Request, RunError};
use calorimeter_sinks::log_line;
use clap::Args;
use std::path::PathBuf;

/// Measure the solutions of a flashinfer-bench data set
///
/// Each workload is a group of cases: the Python reference of its definition, and the solutions in Python and Triton.
/// The outputs of a solution must match the outputs of the reference. The command measures as `run` does and writes the
/// same files. It also writes traces/DEFINITION.jsonl in the format of flashinfer-bench.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct FlashinferArguments {
    /// Folder of the data set, with definitions, workloads and solutions
    #[arg(value_name = "DIR", required_unless_present = "resume", conflicts_with = "resume")]
    pub dataset: Option<PathBuf>,
    /// Definitions to measure [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub definitions: Vec<String>,
    /// Solutions to measure [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub solutions: Vec<String>,
    /// Measure the first N workloads of each definition [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub workloads: Option<u32>,
    /// Maximum absolute error of an element; an element is wrong if it also exceeds --rtol
    #[arg(long, value_name = "NUMBER", default_value = "0.01", value_parser = limit)]
    pub atol: f64,
    /// Maximum relative error of an element
    #[arg(long, value_name = "NUMBER", default_value = "0.01", value_parser = limit)]
    pub rtol: f64,
    /// Minimum share of correct elements [default: 0.95 for mixtures of experts, otherwise 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub required_matched_ratio: Option<f64>,
    #[command(flatten)]
    pub run: RunArguments,
}

fn limit(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "expected a number of at least 0, e.g. 0.01".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    limit(text).ok().filter(|share| *share <= 1.0).ok_or_else(|| "expected a number from 0 to 1, e.g. 0.95".to_owned())
}

pub(super) fn flashinfer(arguments: FlashinferArguments) -> Result<Exit, CliError> {
    let FlashinferArguments { dataset, definitions, solutions, workloads, atol, rtol, .. } = arguments;
    if arguments.run.overrides.cases.scale_shapes.is_some() {
        return Err(CliError::Usage("--scale-shapes does not apply to workloads, whose sizes are fixed".into()));
    }
    let options = DatasetOptions {
        definitions,
        solutions,
        workloads: workloads.map(|count| count as usize),
        atol,
        rtol,
        matched_share: arguments.required_matched_ratio,
    };
    let (entries, notes) = match &dataset {
        Some(dir) => entries(dir, &options).map_err(RunError::from)?,
        None => Default::default(),
    };
    notes.iter().for_each(|note| log_line!("note: {note}"));
    let request = Request { entries, ..Request::default() };
    let Some(mut finished) = execute(request, arguments.run)? else { return Ok(Exit::Success) };
    let exit = finished.print_summary();
    finished.finish(exit)
}
