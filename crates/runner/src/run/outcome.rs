//! What follows when the last group was measured: the summary, the derived files, and what a reader should know.

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

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// Every record, those of an earlier part of a resumed run included, in the order of the plan. Their series are in the
    /// journal.
    pub records: Vec<Record>,
    /// Files written.
    pub paths: Vec<PathBuf>,
    /// Derived files that could not be written; the journal is complete all the same.
    pub errors: Vec<SinkError>,
    /// Whether it ended before its last case.
    pub interrupted: bool,
    /// Why it ended early, where workers could no longer be had.
    pub stopped: Option<WorkerError>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// The speed-ups of each recipe over all shapes.
    pub suite: Vec<SuiteSpeedup>,
}

/// A run whose last group was measured, or that goes no further.
pub struct Ended<'a> {
    pub plan: &'a Plan,
    pub place: &'a Place,
    pub devices: &'a FoundDevices,
    pub floors: &'a HashMap<Device, Floor>,
    /// What a reader should know of the files.
    pub notes: &'a [String],
    pub header: Header,
    pub resumed: Vec<Resumed>,
    pub warnings: Vec<JournalWarning>,
    pub stopped: Option<WorkerError>,
}

impl Ended<'_> {
    /// Sums the run up and writes what is derived from its records.
    pub fn finish(self, desk: Desk<'_>) -> Result<Outcome, RunError> {
        // One that came after the last record interrupted nothing.
        let is_cut_short = self.stopped.is_some() || desk.listener.interrupted();
        let Desk { journal, mut records, error, .. } = desk;
        if let Some(error) = error {
            return Err(error.into());
        }
        let interrupted = is_cut_short && records.len() < self.plan.len();
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

    /// What a reader should know, in the order of what it is about: journal, devices, files, measurement.
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
