//! `calorimeter compare`.

use super::error::CliError;
use super::options::ColorArguments;
use super::run::color;
use crate::Exit;
use crate::entries::Fraction;
use crate::print::{print, print_table};
use calorimeter_compare::{
    CompareOptions, ComparedRun, RunComparison, github, junit, latest_run, markdown, read_runs, text,
};
use calorimeter_probe::calibration::{CalibrationProfile, compare_machines, is_profile, machines_table};
use calorimeter_probe::noise_floor::NoiseFloor;
use calorimeter_sinks::log_line;
use clap::{Args, ValueEnum};
use serde::Serialize;
use std::path::Path;

const EXIT_CODES: &str = "Exit codes:
  0    no case became slower or broke
  1    a case became slower or broke
  2    invalid usage, or runs that cannot be compared";

/// Compare two runs and fail if a case became slower, or compare two machines by their profiles.
///
/// A and B are run folders, journals, Parquet files or names given with `--save-baseline`. Alternatively, both are
/// profiles of `calorimeter calibrate`. Join several runs of one side with commas: the intervals then include the
/// variation between processes. Each case that exists on both sides gets a speed ratio, an interval and a verdict;
/// verdicts are corrected for the number of cases. Runs on different hardware, drivers or clock settings are refused.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct CompareArguments {
    /// Reference side
    #[arg(value_name = "A")]
    pub before: String,
    /// Side to compare with A [default: the newest run in results]
    #[arg(value_name = "B")]
    pub after: Option<String>,
    /// Largest difference that counts as none; raised if `calorimeter noise` found a higher noise floor
    #[arg(long, value_name = "FRACTION", default_value = "2%")]
    pub margin: Fraction,
    /// Compare runs even if they are not comparable, and report the reasons
    #[arg(long)]
    pub force: bool,
    /// Show every case instead of changes only
    #[arg(long)]
    pub all: bool,
    /// Prices of the two machines, in the order of their profiles, e.g. 2.5,4
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = parse_price)]
    pub price: Option<Vec<f64>>,
    /// Output format
    #[arg(long, value_enum, default_value = "table")]
    pub format: CompareFormat,
    #[command(flatten)]
    pub color: ColorArguments,
}

/// Output formats of `calorimeter compare`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CompareFormat {
    /// Table for a terminal
    Table,
    /// Markdown for a pull request
    Markdown,
    /// JSON object
    Json,
    /// JUnit XML with one test per case
    Junit,
    /// Annotations for GitHub Actions
    Github,
}

fn parse_price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price > 0.0);
    price.ok_or_else(|| format!("invalid price {text:?}: expected a number above 0"))
}

pub(super) fn compare(arguments: CompareArguments) -> Result<Exit, CliError> {
    let is_profile = |side: &str| is_profile(Path::new(side));
    let one = &arguments.before;
    // Read first, so that a missing A is reported before a missing B.
    let before = if is_profile(one) { None } else { Some(read_runs(one)?) };
    let other = &arguments.after.clone().map_or_else(|| latest_run(one), Ok)?;
    match (before, is_profile(other)) {
        (None, true) => compare_profiles([one, other], &arguments),
        (Some(before), false) => compare_runs(&before, other, &arguments),
        (None, false) => Err(mixed_sides_error(other, one)),
        (Some(_), true) => Err(mixed_sides_error(one, other)),
    }
}

fn mixed_sides_error(run: &str, profile: &str) -> CliError {
    CliError::Usage(format!(
        "cannot compare the run {run} with the calibration profile {profile}: pass two runs or two profiles"
    ))
}

fn compare_runs(before: &[ComparedRun], other: &str, arguments: &CompareArguments) -> Result<Exit, CliError> {
    let after = read_runs(other)?;
    if arguments.after.is_none() {
        log_line!("note: comparing with the newest run, {other}");
    }
    if arguments.price.is_some() {
        return Err(CliError::Usage("--price applies to machines: pass two profiles".into()));
    }
    let header = before.first().and_then(|run| run.read.header.as_ref());
    let noise_floors = header.map(|header| NoiseFloor::of_environment(&header.environment)).unwrap_or_default();
    let options = CompareOptions { margin: arguments.margin.0, force: arguments.force, noise_floors };
    let comparison = calorimeter_compare::compare(before, &after, &options)?;
    print_comparison(&comparison, arguments)?;
    Ok(if comparison.has_regressions() { Exit::Regression } else { Exit::Success })
}

fn compare_profiles(paths: [&str; 2], arguments: &CompareArguments) -> Result<Exit, CliError> {
    let [one, other] = paths.map(|path| CalibrationProfile::read(Path::new(path)).map_err(CliError::Usage));
    let profiles = [one?, other?];
    let prices = arguments.price.clone().map(<[f64; 2]>::try_from).transpose();
    let prices = prices.map_err(|_| CliError::Usage("--price requires two prices, e.g. 2.5,4".into()))?;
    let machines = compare_machines(&profiles, prices).map_err(CliError::Usage)?;
    print(&match arguments.format {
        CompareFormat::Table => machines_table(&machines),
        CompareFormat::Json => to_json(&machines),
        CompareFormat::Markdown | CompareFormat::Junit | CompareFormat::Github => {
            return Err(CliError::Usage("two profiles can be printed as table or json only".into()));
        }
    })?;
    Ok(Exit::Success)
}

fn print_comparison(comparison: &RunComparison, arguments: &CompareArguments) -> std::io::Result<()> {
    match arguments.format {
        CompareFormat::Table => print_table(&text(comparison, arguments.all, color(&arguments.color))),
        CompareFormat::Markdown => print(&markdown(comparison, arguments.all)),
        CompareFormat::Json => print(&to_json(comparison)),
        CompareFormat::Junit => print(&junit(comparison)),
        CompareFormat::Github => print(&github(comparison)),
    }
}

fn to_json(value: &impl Serialize) -> String {
    // Keys are strings and all floats are finite, so serialization cannot fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
