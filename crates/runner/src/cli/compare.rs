//! `calorimeter compare`.

use super::error::CliError;
use super::options::ColorArguments;
use super::run::color;
use crate::Exit;
use crate::compare::{self, Comparison, Sources, latest_run, sources};
use crate::entries::Share;
use crate::print::print;
use crate::tell::tell;
use clap::{Args, ValueEnum};
use serde::Serialize;

const EXIT_CODES: &str = "Exit codes:
  0    nothing became slower, and nothing broke
  1    something did
  2    usage, or runs that cannot be compared";

/// Compare two runs, and fail where something became slower; or two machines by their profiles.
///
/// A and B are folders of runs, journals, Parquet files, or names that `--save-baseline` gave; or both are profiles of
/// `calorimeter calibrate`. Several runs of one side stand with commas between them: what differs from process to process is
/// then in the intervals. Every case that both have gets the ratio of its times, an interval and a verdict, which allows for
/// there being so many cases. Runs of two machines, drivers or policies of clocks are refused.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct CompareArguments {
    /// What to compare with
    #[arg(value_name = "A")]
    pub before: String,
    /// What is compared [default: the newest run in results]
    #[arg(value_name = "B")]
    pub after: Option<String>,
    /// A difference within this share is none; more where `calorimeter noise` found that the device needs it
    #[arg(long, value_name = "SHARE", default_value = "2%")]
    pub margin: Share,
    /// Compare also what is not alike, and say so
    #[arg(long)]
    pub force: bool,
    /// Show every case, not only what changed
    #[arg(long)]
    pub all: bool,
    /// The prices of two machines, in the order of their profiles, e.g. 2.5,4
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = price)]
    pub price: Option<Vec<f64>>,
    /// How to print it
    #[arg(long, value_enum, default_value = "table")]
    pub format: CompareFormat,
    #[command(flatten)]
    pub color: ColorArguments,
}

/// How a comparison is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// For people
    Table,
    /// For a pull request
    Markdown,
    /// One JSON object
    Json,
    /// A test for each case
    Junit,
    /// Annotations of GitHub's runners
    Github,
}

fn price(text: &str) -> Result<f64, String> {
    let price = text.parse().ok().filter(|price: &f64| price.is_finite() && *price > 0.0);
    price.ok_or_else(|| format!("{text:?} is no price above 0"))
}

pub fn compare(arguments: CompareArguments) -> Result<Exit, CliError> {
    let after = match &arguments.after {
        Some(after) => after.clone(),
        None => latest_run(&arguments.before).inspect(|run| tell!("note: compared is the newest run, {run}"))?,
    };
    match sources(&arguments.before, &after)? {
        Sources::Runs(before, after) => {
            if arguments.price.is_some() {
                return Err(CliError::Usage("--price is of machines: give two profiles".into()));
            }
            let comparison = compare::compare(&before, &after, arguments.margin.0, arguments.force)?;
            print(&printed(&comparison, &arguments))?;
            Ok(if comparison.has_regressions() { Exit::Regression } else { Exit::Fine })
        }
        Sources::Profiles(profiles) => {
            let prices = arguments.price.map(<[f64; 2]>::try_from).transpose();
            let prices = prices.map_err(|_| CliError::Usage("--price takes two prices, such as 2.5,4".into()))?;
            let machines = compare::beside(&profiles, prices)?;
            print(&match arguments.format {
                CompareFormat::Table => compare::machines(&machines),
                CompareFormat::Json => json(&machines),
                CompareFormat::Markdown | CompareFormat::Junit | CompareFormat::Github => {
                    return Err(CliError::Usage("two profiles are printed as a table or as json".into()));
                }
            })?;
            Ok(Exit::Fine)
        }
    }
}

fn printed(comparison: &Comparison, arguments: &CompareArguments) -> String {
    match arguments.format {
        CompareFormat::Table => compare::text(comparison, arguments.all, color(&arguments.color)),
        CompareFormat::Markdown => compare::markdown(comparison, arguments.all),
        CompareFormat::Json => json(comparison),
        CompareFormat::Junit => compare::junit(comparison),
        CompareFormat::Github => compare::github(comparison),
    }
}

fn json(of: &impl Serialize) -> String {
    // Keys are strings and every float is finite, so that it can always be written.
    serde_json::to_string_pretty(of).unwrap_or_default() + "\n"
}
