//! `calorimeter report`.

use super::error::CliError;
use crate::Exit;
use crate::print::print;
use crate::run::{sort_as_planned, sort_briefs_as_planned};
use crate::suite_speedups::means;
use calorimeter_probe::calibration::{CalibrationProfile, is_profile};
use calorimeter_sinks::report::{self, REPORT_FILE, ReportedProfile, ReportedRun, SummarizedRun};
use calorimeter_sinks::{CaseExcerpt, StoredRun, index, log_line, read_parts};
use clap::Args;
use std::path::{Path, PathBuf};

const EXIT_CODES: &str = "Exit codes:
  0    the report was written
  2    invalid usage, an unreadable run, or a run without records";

/// Write one HTML page about one or more runs.
///
/// The page is a single file that needs no network. It shows speed-ups with confidence intervals, a summary, mean
/// speed-ups over selectable axes, roofline, scaling with size, accuracy and speed-up, memory, operators, training,
/// fusion, clocks and power, calibrations, a table of all cases, the reasons for missing times, and the environment. It
/// links to traces and memory pages as long as it stays near the run.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct ReportArguments {
    /// Run folders, journals, Parquet files, or profiles of `calorimeter calibrate`
    ///
    /// A profile in the folder of a run is included.
    #[arg(value_name = "DIR", required = true)]
    pub runs: Vec<PathBuf>,
    /// Output file [default: report.html in the first folder]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write the figures to this folder, each as SVG and PNG, in the initial view of the page
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Print the summary in Markdown; the page is then written only if --output is given
    #[arg(long)]
    pub markdown: bool,
}

pub(super) fn report(arguments: ReportArguments) -> Result<Exit, CliError> {
    let ReportArguments { runs: words, output, plots, markdown } = arguments;
    let (profiles, runs): (Vec<PathBuf>, Vec<PathBuf>) = words.iter().cloned().partition(|path| is_profile(path));
    if markdown && runs.is_empty() {
        let why = "profiles have no Markdown summary; use `calorimeter compare A.json B.json` for two profiles";
        return Err(CliError::Usage(why.into()));
    }
    if markdown && output.is_none() && plots.is_none() {
        let runs = runs.iter().map(|path| read_summary(path)).collect::<Result<Vec<_>, _>>()?;
        print(&report::markdown(&runs))?;
        return Ok(Exit::Success);
    }
    let runs = runs.iter().map(|path| read_run(path)).collect::<Result<Vec<_>, _>>()?;
    let own = runs.iter().map(|run| run.dir.join("profile.json")).filter(|path| path.is_file());
    let profiles = own.chain(profiles).map(|path| read_profile(&path)).collect::<Result<Vec<_>, _>>()?;
    if markdown {
        print(&report::markdown(&runs.iter().map(SummarizedRun::from).collect::<Vec<_>>()))?;
    }
    let mut written = Vec::new();
    let usual = (!markdown).then(|| run_dir(&words[0]).join(REPORT_FILE));
    if let Some(path) = output.or(usual) {
        report::write_page(&runs, &profiles, &path)?;
        written.push(path);
    }
    if let Some(dir) = plots {
        let drawn = report::write_plots(&runs, &profiles, &dir)?;
        if drawn.is_empty() {
            log_line!("note: no figures: these records contain no data to plot");
        }
        written.extend(drawn);
    }
    written.extend(update_index_pages(&runs, &written));
    written.iter().for_each(|path| log_line!("wrote {}", path.display()));
    Ok(Exit::Success)
}

/// Adds links to the written files to the index pages of the run folders.
fn update_index_pages(runs: &[ReportedRun], written: &[PathBuf]) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for run in runs {
        let inside: Vec<PathBuf> = written.iter().filter(|path| path.starts_with(&run.dir)).cloned().collect();
        match index::add(&run.dir, &inside) {
            Ok(page) => pages.extend(page.filter(|_| !inside.is_empty())),
            Err(error) => log_line!("note: {error}"),
        }
    }
    pages
}

fn read_run(path: &Path) -> Result<ReportedRun, CliError> {
    let (mut read, windows) = report::read_run(path)?;
    check_not_empty(path, read.records.is_empty())?;
    if let Some(header) = &read.header {
        sort_as_planned(&mut read.records, header);
    }
    let means = means(&read.records.iter().map(CaseExcerpt::from).collect::<Vec<_>>());
    Ok(ReportedRun { name: path.display().to_string(), dir: run_dir(path).to_owned(), read, windows, means })
}

fn read_summary(path: &Path) -> Result<SummarizedRun, CliError> {
    let StoredRun { header, records: mut cases, .. } = read_parts::<CaseExcerpt>(path)?;
    check_not_empty(path, cases.is_empty())?;
    if let Some(header) = &header {
        sort_briefs_as_planned(&mut cases, header);
    }
    let means = means(&cases);
    Ok(SummarizedRun { name: path.display().to_string(), header, cases, means })
}

fn check_not_empty(path: &Path, is_empty: bool) -> Result<(), CliError> {
    if is_empty {
        return Err(CliError::Usage(format!("{} has no records yet", path.display())));
    }
    Ok(())
}

fn read_profile(path: &Path) -> Result<ReportedProfile, CliError> {
    let profile = CalibrationProfile::read(path).map_err(CliError::Usage)?;
    // Keys are strings and all floats are finite, so serialization cannot fail.
    let profile = serde_json::to_value(&profile).unwrap_or_default();
    Ok(ReportedProfile { name: path.display().to_string(), profile })
}

/// Folder of a run; for a file, the folder that contains it.
fn run_dir(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) }
}
