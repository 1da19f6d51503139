//! `calorimeter report`.

use super::error::CliError;
use crate::Exit;
use crate::print::print;
use crate::run::sort_as_planned;
use crate::suite_speedups;
use crate::tell::tell;
use calorimeter_sinks::read_back;
use calorimeter_sinks::report::{self, REPORT_FILE, ReportedRun};
use clap::Args;
use std::path::{Path, PathBuf};

const EXIT_CODES: &str = "Exit codes:
  0    the report is written
  2    usage, a run that cannot be read, or one without records";

/// Make one page of one run or several, to look at and to send on.
///
/// The page needs a browser and nothing else: no network, no other file. It has the summary, speed-ups over axes that the
/// reader chooses, the roofline, figures against size, accuracy against speed, memory, operators, fusion, every case in a
/// table, what was not measured and why, and the machine. Links lead to traces and memory pages while it lies near the run.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct ReportArguments {
    /// Folders of runs, journals, or Parquet files
    #[arg(value_name = "DIR", required = true)]
    pub runs: Vec<PathBuf>,
    /// Where to write the page [default: report.html in the first folder]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the summary in Markdown, and write no page unless --output is given
    #[arg(long)]
    pub markdown: bool,
}

pub fn report(arguments: ReportArguments) -> Result<Exit, CliError> {
    let runs = arguments.runs.iter().map(|path| reported(path)).collect::<Result<Vec<_>, _>>()?;
    if arguments.markdown {
        print(&report::markdown(&runs))?;
    }
    let usual = (!arguments.markdown).then(|| runs[0].dir.join(REPORT_FILE));
    if let Some(path) = arguments.output.or(usual) {
        report::write_page(&runs, &path)?;
        tell!("wrote {}", path.display());
    }
    Ok(Exit::Fine)
}

fn reported(path: &Path) -> Result<ReportedRun, CliError> {
    let mut read = read_back(path)?;
    if read.records.is_empty() {
        return Err(CliError::Usage(format!("{} has no records yet", path.display())));
    }
    if let Some(header) = &read.header {
        sort_as_planned(&mut read.records, header);
    }
    let dir = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
    let means = suite_speedups::means(&read.records);
    Ok(ReportedRun { name: path.display().to_string(), dir: dir.to_owned(), read, means })
}
