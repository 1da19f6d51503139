//! `calorimeter watch`: follows a run that another process started.

use super::error::CliError;
use super::options::ColorArguments;
use super::run::color;
use crate::Exit;
use crate::print::{print_table, width};
use crate::progress::{Bar, ProgressState};
use crate::run::sort_as_planned;
use calorimeter_case::CaseId;
use calorimeter_case::record::Record;
use calorimeter_probe::host::now;
use calorimeter_sinks::journal::{JournalFollower, JournalLine, RunSummary};
use calorimeter_sinks::log_line;
use calorimeter_sinks::terminal::{Color, LiveTable, summary};
use clap::Args;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

const EXIT_CODES: &str = "Exit codes:
  0    the run ended
  2    no journal, or the process that wrote it is gone";

/// Show the progress of a run started in another terminal.
///
/// Prints the finished cases, then the cases of each further group as it finishes, with the progress below the table and
/// the summary at the end. A completed run is printed at once.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(super) struct WatchArguments {
    /// Folder of the run, or its journal
    #[arg(value_name = "DIR")]
    pub run: PathBuf,
    #[command(flatten)]
    pub color: ColorArguments,
}

/// Poll interval for the journal.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Number of polls without a new record after which a group with measured cases is complete.
const IDLE_POLLS: u32 = 5;

pub(super) fn watch(WatchArguments { run, color: arguments }: WatchArguments) -> Result<Exit, CliError> {
    let color = color(&arguments);
    let mut follower = JournalFollower::open(&run)?;
    let mut watched = WatchedRun::new(&follower, color);
    let summary = loop {
        // Checked before reading, so that the last lines of a run that ends in between are not missed.
        let abandoned = follower.is_abandoned();
        let mut lines = Vec::new();
        follower.read(|line| lines.push(line))?;
        watched.idle_polls = if lines.is_empty() { watched.idle_polls + 1 } else { 0 };
        lines.into_iter().try_for_each(|line| watched.on_journal_line(line))?;
        let is_complete = watched.idle_polls >= IDLE_POLLS && watched.table.has_measured_case();
        if is_complete || abandoned || watched.summary.is_some() {
            let text = watched.table.finish_group();
            watched.print(text)?;
        }
        if let Some(summary) = watched.summary.take() {
            break summary;
        }
        if abandoned {
            watched.bar.clear();
            let why = format!(
                "{run}: the run was stopped after {} cases; continue with: calorimeter run --resume {run}",
                watched.progress(),
                run = run.display(),
            );
            return Err(CliError::Usage(why));
        }
        watched.draw();
        std::thread::sleep(POLL_INTERVAL);
    };
    watched.bar.clear();
    watched.print_summary(&follower, &summary, color)?;
    Ok(Exit::Success)
}

/// State of a followed run.
struct WatchedRun {
    table: LiveTable,
    /// Number of polls since the last journal line.
    idle_polls: u32,
    bar: Bar,
    records: Vec<Record>,
    index_by_id: HashMap<CaseId, usize>,
    planned_cases: Option<u64>,
    /// Time of the start, or of the last resume.
    started: String,
    /// Summary of the run; cleared if the run is resumed.
    summary: Option<RunSummary>,
}

impl WatchedRun {
    fn new(follower: &JournalFollower, color: Color) -> Self {
        let header = follower.header();
        Self {
            table: LiveTable::new(color).with_width(width()),
            idle_polls: 0,
            bar: Bar::new(),
            records: Vec::new(),
            index_by_id: HashMap::new(),
            planned_cases: header.plan_cases,
            started: header.started.clone(),
            summary: None,
        }
    }

    fn on_journal_line(&mut self, line: JournalLine) -> Result<(), CliError> {
        match line {
            JournalLine::Record(record) => self.record(*record)?,
            JournalLine::Resumed(resumed) => (self.started, self.summary) = (resumed.time, None),
            JournalLine::Summary(summary) => self.summary = Some(summary),
            _ => {}
        }
        Ok(())
    }

    fn record(&mut self, mut record: Record) -> Result<(), CliError> {
        let text = self.table.add(&record);
        self.print(text)?;
        drop(record.take_series());
        match self.index_by_id.get(&record.case.id) {
            Some(&place) => self.records[place] = record,
            None => {
                self.index_by_id.insert(record.case.id.clone(), self.records.len());
                self.records.push(record);
            }
        }
        Ok(())
    }

    /// Prints the table of a group, if any.
    fn print(&self, text: Option<String>) -> std::io::Result<()> {
        text.map_or(Ok(()), |text| self.bar.suspend(|| print_table(&format!("{text}\n"))))
    }

    fn draw(&mut self) {
        let since = chrono::DateTime::parse_from_rfc3339(&self.started);
        let elapsed = since.map_or(0, |since| now().signed_duration_since(since).num_seconds());
        let done = self.records.len() as u64;
        let total = self.planned_cases.unwrap_or(done);
        self.bar.draw(|| ProgressState { done, total, elapsed: elapsed.max(0) as f64, ..ProgressState::default() });
    }

    /// Number of finished cases, and of planned ones if known: `3 of 8`.
    fn progress(&self) -> String {
        let planned = self.planned_cases.map(|planned| format!(" of {planned}")).unwrap_or_default();
        format!("{}{planned}", self.records.len())
    }

    /// Prints the summary as `run` does at its end.
    fn print_summary(mut self, follower: &JournalFollower, end: &RunSummary, color: Color) -> Result<(), CliError> {
        sort_as_planned(&mut self.records, follower.header());
        print_table(&format!("\n{}\n", summary(&self.records, &end.suite, color, width())))?;
        end.notes.iter().for_each(|note| log_line!("note: {note}"));
        if end.interrupted {
            log_line!("note: the run was interrupted after {} cases", self.progress());
        }
        Ok(())
    }
}
