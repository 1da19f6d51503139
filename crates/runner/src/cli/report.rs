//! `calorimeter report`.

use super::error::CliError;
use crate::Exit;
use crate::calibration::{Profile, is_profile};
use crate::print::print;
use crate::run::{sort_as_planned, sort_briefs_as_planned};
use crate::suite_speedups::means;
use crate::tell::tell;
use calorimeter_sinks::report::{self, REPORT_FILE, ReportedProfile, ReportedRun, SummarizedRun};
use calorimeter_sinks::{Brief, ReadBack, index, read_back, read_parts};
use clap::Args;
use std::path::{Path, PathBuf};

const EXIT_CODES: &str = "Exit codes:
  0    the report is written
  2    usage, a run that cannot be read, or one without records";

/// Make one page of one run or several, to look at and to send on.
///
/// The page needs a browser and nothing else: no network, no other file. It has the summary, speed-ups over axes that the
/// reader chooses, the roofline, figures against size, accuracy against speed, memory, operators, training, fusion, clocks and
/// power, calibrations side by side, every case in a table, what was not measured and why, and the machine. Links lead to
/// traces and memory pages while it lies near the run.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct ReportArguments {
    /// Folders of runs, journals, Parquet files, or profiles of `calorimeter calibrate`
    ///
    /// The profile that lies in the folder of a run is shown, too.
    #[arg(value_name = "DIR", required = true)]
    pub runs: Vec<PathBuf>,
    /// Where to write the page [default: report.html in the first folder]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Draw its figures into a folder, too: SVG and PNG of each, as the page shows them first
    #[arg(long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
    /// Print the summary in Markdown, and write no page unless --output is given
    #[arg(long)]
    pub markdown: bool,
}

pub fn report(arguments: ReportArguments) -> Result<Exit, CliError> {
    let ReportArguments { runs: words, output, plots, markdown } = arguments;
    let (profiles, runs): (Vec<PathBuf>, Vec<PathBuf>) = words.iter().cloned().partition(|path| is_profile(path));
    if markdown && runs.is_empty() {
        let why = "a profile has no summary in Markdown: `calorimeter compare A.json B.json` sets two side by side";
        return Err(CliError::Usage(why.into()));
    }
    if markdown && output.is_none() && plots.is_none() {
        let runs = runs.iter().map(|path| summarized(path)).collect::<Result<Vec<_>, _>>()?;
        print(&report::markdown(&runs))?;
        return Ok(Exit::Fine);
    }
    let runs = runs.iter().map(|path| reported(path)).collect::<Result<Vec<_>, _>>()?;
    let own = runs.iter().map(|run| run.dir.join("profile.json")).filter(|path| path.is_file());
    let profiles = own.chain(profiles).map(|path| profile(&path)).collect::<Result<Vec<_>, _>>()?;
    if markdown {
        print(&report::markdown(&runs.iter().map(SummarizedRun::from).collect::<Vec<_>>()))?;
    }
    let mut written = Vec::new();
    let usual = (!markdown).then(|| folder_of(&words[0]).join(REPORT_FILE));
    if let Some(path) = output.or(usual) {
        report::write_page(&runs, &profiles, &path)?;
        written.push(path);
    }
    if let Some(dir) = plots {
        let drawn = report::write_plots(&runs, &profiles, &dir)?;
        if drawn.is_empty() {
            tell!("note: these records have nothing to draw");
        }
        written.extend(drawn);
    }
    written.extend(indexed(&runs, &written));
    written.iter().for_each(|path| tell!("wrote {}", path.display()));
    Ok(Exit::Fine)
}

/// The pages in the folders of runs, which now lead to what was written there, too.
fn indexed(runs: &[ReportedRun], written: &[PathBuf]) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for run in runs {
        let inside: Vec<PathBuf> = written.iter().filter(|path| path.starts_with(&run.dir)).cloned().collect();
        match index::add(&run.dir, &inside) {
            Ok(page) => pages.extend(page.filter(|_| !inside.is_empty())),
            Err(error) => tell!("note: {error}"),
        }
    }
    pages
}

fn reported(path: &Path) -> Result<ReportedRun, CliError> {
    let mut read = read_back(path)?;
    refuse_empty(path, read.records.is_empty())?;
    if let Some(header) = &read.header {
        sort_as_planned(&mut read.records, header);
    }
    let means = means(&read.records.iter().map(Brief::from).collect::<Vec<_>>());
    Ok(ReportedRun { name: path.display().to_string(), dir: folder_of(path).to_owned(), read, means })
}

fn summarized(path: &Path) -> Result<SummarizedRun, CliError> {
    let ReadBack { header, records: mut cases, .. } = read_parts::<Brief>(path)?;
    refuse_empty(path, cases.is_empty())?;
    if let Some(header) = &header {
        sort_briefs_as_planned(&mut cases, header);
    }
    let means = means(&cases);
    Ok(SummarizedRun { name: path.display().to_string(), header, cases, means })
}

fn refuse_empty(path: &Path, is_empty: bool) -> Result<(), CliError> {
    if is_empty {
        return Err(CliError::Usage(format!("{} has no records yet", path.display())));
    }
    Ok(())
}

fn profile(path: &Path) -> Result<ReportedProfile, CliError> {
    let profile = Profile::read(path).map_err(CliError::Usage)?;
    // Keys are strings and no float is infinite, so that it can always be written.
    let profile = serde_json::to_value(&profile).unwrap_or_default();
    Ok(ReportedProfile { name: path.display().to_string(), profile })
}

/// The folder of a run, or that in which a file lies.
fn folder_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) }
}
