//! End of a run: summary, derived files and notes.

use super::desk::Desk;
use super::found_devices::FoundDevices;
use super::{Place, RunError};
use super::{clocks, contained, order, surroundings};
use crate::host::now;
use crate::noise_floor::Floor;
use crate::plan::Plan;
use crate::suite_speedups::speedups;
use crate::worker::WorkerError;
use calorimeter_case::record::SuiteSpeedup;
use calorimeter_case::{Device, Record};
use calorimeter_sinks::journal::{Header, JournalWarning, Resumed, Summary, count_by_status};
use calorimeter_sinks::{Run, SinkError, write_all};
use std::collections::HashMap;
use std::path::PathBuf;

/// Result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// All records in plan order, including those of earlier parts. Their series are in the journal.
    pub records: Vec<Record>,
    /// Files written.
    pub paths: Vec<PathBuf>,
    /// Errors of derived files; the journal is complete nevertheless.
    pub errors: Vec<SinkError>,
    /// True if the run ended before its last case.
    pub interrupted: bool,
    /// Error of the workers, if it ended the run.
    pub stopped: Option<WorkerError>,
    /// Notes for the reader of the results.
    pub notes: Vec<String>,
    /// Mean speed-up of each recipe over all shapes.
    pub suite: Vec<SuiteSpeedup>,
}

/// Writes the results of a run after its last group, or after it stopped.
pub struct Ended<'a> {
    pub plan: &'a Plan,
    pub place: &'a Place,
    pub devices: &'a FoundDevices,
    pub floors: &'a HashMap<Device, Floor>,
    /// Notes about the configuration files.
    pub notes: &'a [String],
    pub header: Header,
    pub resumed: Vec<Resumed>,
    pub warnings: Vec<JournalWarning>,
    pub stopped: Option<WorkerError>,
}

impl Ended<'_> {
    /// Writes the summary and the derived files.
    pub fn finish(self, writer: Desk<'_>) -> Result<Outcome, RunError> {
        // An interrupt after the last record is ignored.
        let stopped_early = self.stopped.is_some() || writer.listener.interrupted();
        let Desk { journal, mut records, error, .. } = writer;
        if let Some(error) = error {
            return Err(error.into());
        }
        let interrupted = stopped_early && records.len() < self.plan.len();
        let mut notes = self.all_notes(&records);
        order::sort(&mut records, self.plan.ids());
        if !self.resumed.is_empty() {
            notes.extend(contained::keep_within(&mut records, self.place));
        }
        let counts = count_by_status(&records);
        let (finished, suite) = (now().to_rfc3339(), speedups(&records));
        let summary = Summary { finished, interrupted, counts, notes: notes.clone(), suite: suite.clone() };
        let stored = journal.finish(&summary)?;
        let Place { dir, output_dir } = self.place.clone();
        let run = Run { dir, output_dir, header: self.header, records, stored };
        let written = write_all(&run);
        let (records, errors) = (run.records, written.errors);
        Ok(Outcome { records, paths: written.paths, errors, interrupted, stopped: self.stopped, notes, suite })
    }

    /// Collects notes, ordered by subject: journal, devices, files, measurement.
    fn all_notes(&self, records: &[Record]) -> Vec<String> {
        let mut notes: Vec<String> = self.warnings.iter().map(ToString::to_string).collect();
        notes.extend(self.devices.in_use.iter().map(|(device, others)| format!("{device}: {others}")));
        let mut outdated: Vec<String> = self.floors.values().filter_map(|floor| floor.note.clone()).collect();
        outdated.sort_unstable();
        notes.extend(outdated);
        notes.extend(self.devices.newcomers());
        notes.extend(self.notes.iter().cloned());
        notes.extend(surroundings::changed(&self.header.environment, &self.resumed));
        notes.extend(clocks::mixed(records));
        notes
    }
}
