//! End of a run: summary, derived files and notes.

use super::record_writer::RecordWriter;
use super::run_devices::RunDevices;
use super::{OutputDirs, RunError};
use super::{containment, environment_changes, mixed_clocks, plan_order};
use crate::plan::Plan;
use crate::suite_speedups::speedups;
use crate::worker::WorkerError;
use calorimeter_case::record::SuiteSpeedup;
use calorimeter_case::{Device, Record};
use calorimeter_probe::host::now;
use calorimeter_probe::noise_floor::NoiseFloor;
use calorimeter_sinks::journal::{Header, JournalWarning, Resumed, RunSummary, count_by_status};
use calorimeter_sinks::{SinkError, SinkInput, write_all};
use std::collections::HashMap;
use std::path::PathBuf;

/// Result of a run.
#[derive(Debug)]
pub struct RunOutcome {
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
pub(super) struct RunFinisher<'a> {
    pub plan: &'a Plan,
    pub output_dirs: &'a OutputDirs,
    pub devices: &'a RunDevices,
    pub floors: &'a HashMap<Device, NoiseFloor>,
    /// Notes about the configuration files.
    pub notes: &'a [String],
    pub header: Header,
    pub resumed: Vec<Resumed>,
    pub warnings: Vec<JournalWarning>,
    pub stopped: Option<WorkerError>,
}

impl RunFinisher<'_> {
    /// Writes the summary and the derived files.
    pub(super) fn finish(self, writer: RecordWriter<'_>) -> Result<RunOutcome, RunError> {
        // An interrupt after the last record is ignored.
        let stopped_early = self.stopped.is_some() || writer.listener.interrupted();
        let RecordWriter { journal, mut records, error, .. } = writer;
        if let Some(error) = error {
            return Err(error.into());
        }
        let interrupted = stopped_early && records.len() < self.plan.len();
        let mut notes = self.all_notes(&records);
        plan_order::sort_records(&mut records, self.plan.ids());
        if !self.resumed.is_empty() {
            notes.extend(containment::redirect_exports(&mut records, self.output_dirs));
        }
        let counts = count_by_status(&records);
        let (finished, suite) = (now().to_rfc3339(), speedups(&records));
        let summary = RunSummary { finished, interrupted, counts, notes: notes.clone(), suite: suite.clone() };
        let stored = journal.finish(&summary)?;
        let OutputDirs { dir, output_dir } = self.output_dirs.clone();
        let run = SinkInput { dir, output_dir, header: self.header, records, stored };
        let written = write_all(&run);
        let (records, errors) = (run.records, written.errors);
        Ok(RunOutcome { records, paths: written.paths, errors, interrupted, stopped: self.stopped, notes, suite })
    }

    /// Collects notes, ordered by subject: journal, devices, files, measurement.
    fn all_notes(&self, records: &[Record]) -> Vec<String> {
        let mut notes: Vec<String> = self.warnings.iter().map(ToString::to_string).collect();
        notes.extend(self.devices.in_use.iter().map(|(device, others)| format!("{device}: {others}")));
        let mut outdated: Vec<String> = self.floors.values().filter_map(|floor| floor.note.clone()).collect();
        outdated.sort_unstable();
        notes.extend(outdated);
        notes.extend(self.devices.new_users());
        notes.extend(self.notes.iter().cloned());
        notes.extend(environment_changes::changed_facts(&self.header.environment, &self.resumed));
        notes.extend(mixed_clocks::mixed_clock_notes(records));
        notes
    }
}
