//! `calorimeter watch`: follows a run that another process started.

use super::error::CliError;
use super::options::ColorArguments;
use super::run::color;
use crate::Exit;
use crate::host::now;
use crate::print::{print, width};
use crate::progress::{Bar, Told};
use crate::run::sort_as_planned;
use crate::log_line::log_line;
use calorimeter_case::CaseId;
use calorimeter_case::record::Record;
use calorimeter_sinks::journal::{Followed, Follower, Summary};
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
/// Prints the finished cases, then each further case as it finishes, with the progress below the table and the summary
/// at the end. A completed run is printed at once.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub struct WatchArguments {
    /// Folder of the run, or its journal
    #[arg(value_name = "DIR")]
    pub run: PathBuf,
    #[command(flatten)]
    pub color: ColorArguments,
}

/// Poll interval for the journal.
const GLANCE: Duration = Duration::from_millis(200);

pub fn watch(WatchArguments { run, color: arguments }: WatchArguments) -> Result<Exit, CliError> {
    let color = color(&arguments);
    let mut follower = Follower::open(&run)?;
    let mut watched = Watched::new(&follower, color);
    let summary = loop {
        // Checked before reading, so that the last lines of a run that ends in between are not missed.
        let abandoned = follower.is_abandoned();
        let mut lines = Vec::new();
        follower.read(|line| lines.push(line))?;
        lines.into_iter().try_for_each(|line| watched.hear(line))?;
        if let Some(summary) = watched.summary.take() {
            break summary;
        }
        if abandoned {
            watched.bar.clear();
            let why = format!(
                "{run}: the run was stopped after {} of {} cases; continue with: calorimeter run --resume {run}",
                watched.records.len(),
                watched.of,
                run = run.display(),
            );
            return Err(CliError::Usage(why));
        }
        watched.draw();
        std::thread::sleep(GLANCE);
    };
    watched.bar.clear();
    watched.sum_up(&follower, &summary, color)?;
    Ok(Exit::Fine)
}

/// State of a followed run.
struct Watched {
    table: LiveTable,
    bar: Bar,
    records: Vec<Record>,
    place_of: HashMap<CaseId, usize>,
    of: u64,
    /// Time of the start, or of the last resume.
    since: String,
    /// Summary of the run; cleared if the run is resumed.
    summary: Option<Summary>,
}

impl Watched {
    fn new(follower: &Follower, color: Color) -> Self {
        let header = follower.header();
        Self {
            table: LiveTable::new(color).as_wide_as(width()),
            bar: Bar::new(),
            records: Vec::new(),
            place_of: HashMap::new(),
            of: header.plan_cases,
            since: header.started.clone(),
            summary: None,
        }
    }

    fn hear(&mut self, line: Followed) -> Result<(), CliError> {
        match line {
            Followed::Record(record) => self.record(*record)?,
            Followed::Resumed(resumed) => (self.since, self.summary) = (resumed.time, None),
            Followed::Summary(summary) => self.summary = Some(summary),
            _ => {}
        }
        Ok(())
    }

    fn record(&mut self, mut record: Record) -> Result<(), CliError> {
        drop(record.take_series());
        if let Some(text) = self.table.show(&record) {
            self.bar.aside(|| print(&format!("{text}\n")))?;
        }
        match self.place_of.get(&record.case.id) {
            Some(&place) => self.records[place] = record,
            None => {
                self.place_of.insert(record.case.id.clone(), self.records.len());
                self.records.push(record);
            }
        }
        Ok(())
    }

    fn draw(&mut self) {
        let since = chrono::DateTime::parse_from_rfc3339(&self.since);
        let elapsed = since.map_or(0, |since| now().signed_duration_since(since).num_seconds());
        let (done, of) = (self.records.len() as u64, self.of);
        self.bar.draw(|| Told { done, of, gone: elapsed.max(0) as f64, ..Told::default() });
    }

    /// Prints the summary as `run` does at its end.
    fn sum_up(mut self, follower: &Follower, end: &Summary, color: Color) -> Result<(), CliError> {
        sort_as_planned(&mut self.records, follower.header());
        print(&format!("\n{}\n", summary(&self.records, &end.suite, color, width())))?;
        end.notes.iter().for_each(|note| log_line!("note: {note}"));
        if end.interrupted {
            log_line!("note: the run was interrupted after {} of {} cases", self.records.len(), self.of);
        }
        Ok(())
    }
}
