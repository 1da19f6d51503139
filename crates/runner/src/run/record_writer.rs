//! Writer of records: appends each to the journal, then notifies the listener.

use super::{RunEvent, RunListener};
use crate::plan::{Group, PlannedCase};
use crate::worker::{WorkerEvent, WorkerListener};
use calorimeter_case::{CaseId, Device, Record, Status};
use calorimeter_probe::host::now;
use calorimeter_sinks::{Journal, SinkError};
use std::collections::{BTreeMap, HashMap};

/// Appends each record to the journal, then notifies the listener.
pub(super) struct RecordWriter<'a> {
    pub journal: Journal,
    /// Records without their series, which are on disk.
    pub records: Vec<Record>,
    /// Status of cases that an earlier part of the run finished.
    earlier_cases: HashMap<CaseId, Status>,
    pub listener: &'a mut dyn RunListener,
    /// Start time of the current group of each device.
    group_starts: BTreeMap<Device, String>,
    /// Events of records on disk that are not sent yet, per device. Buffering keeps the cases of a group adjacent in
    /// the output when several devices are busy.
    pending_events: BTreeMap<Device, Vec<RunEvent>>,
    buffers_events: bool,
    /// Error after which no records are written.
    pub error: Option<SinkError>,
}

impl<'a> RecordWriter<'a> {
    /// Creates a writer with the records of an earlier part of the run; sends the event that a run of `cases` cases
    /// starts.
    pub(super) fn new(
        journal: Journal,
        mut records: Vec<Record>,
        cases: usize,
        listener: &'a mut dyn RunListener,
    ) -> Self {
        // Exact capacity: a vector that grows by doubling may allocate twice the memory.
        records.reserve_exact(cases.saturating_sub(records.len()));
        let earlier_cases: HashMap<CaseId, Status> =
            records.iter().map(|record| (record.case.id.clone(), record.outcome.status)).collect();
        listener.on_event(RunEvent::RunStarted { cases, finished: earlier_cases.keys().cloned().collect() });
        let (group_starts, pending_events) = (BTreeMap::new(), BTreeMap::new());
        Self {
            journal,
            records,
            earlier_cases,
            listener,
            group_starts,
            pending_events,
            buffers_events: false,
            error: None,
        }
    }

    /// True if an earlier part of the run finished every case of the group.
    pub(super) fn is_complete(&self, group: &Group) -> bool {
        group.cases().iter().all(|planned| self.earlier_cases.contains_key(planned.id()))
    }

    /// Buffers events until their group is complete; ends with [`Self::flush_all`].
    pub(super) fn buffer_events(&mut self) {
        self.buffers_events = true;
    }

    /// Sends all buffered events and stops buffering.
    pub(super) fn flush_all(&mut self) {
        self.buffers_events = false;
        std::mem::take(&mut self.pending_events)
            .into_values()
            .flatten()
            .for_each(|event| self.listener.on_event(event));
    }

    /// Finishes the current group of a device: sends the buffered events, and the event that the group is complete.
    pub(super) fn finish_group(&mut self, device: Device) {
        self.flush_device(device);
        self.listener.on_event(RunEvent::GroupFinished);
    }

    fn flush_device(&mut self, device: Device) {
        self.pending_events.remove(&device).into_iter().flatten().for_each(|event| self.listener.on_event(event));
    }

    /// Starts a group of a device. Unsupported cases are recorded immediately.
    pub(super) fn begin_group(&mut self, group: &Group, device: Device) {
        self.group_starts.insert(device, now().to_rfc3339());
        let refused = |planned: &PlannedCase| {
            let reason = planned.supported().err()?;
            Some(Record::without_time(planned.case(), Status::Unsupported, reason))
        };
        group.cases().iter().filter_map(refused).for_each(|record| self.write(record));
    }

    /// True if a case must be measured. Successful cases of an earlier part are measured again with the remainder of
    /// their group, because comparisons require interleaving.
    pub(super) fn needs_measurement(&self, case: &CaseId) -> bool {
        self.earlier_cases.get(case).is_none_or(|status| *status == Status::Ok)
    }

    /// Writes a record, unless an earlier part of the run has one of the case.
    pub(super) fn write(&mut self, mut record: Record) {
        if self.earlier_cases.contains_key(&record.case.id) || self.error.is_some() {
            return;
        }
        record.outcome.started = self.group_starts.get(&record.case.device).cloned();
        record.outcome.ended = Some(now().to_rfc3339());
        match self.journal.append(&record) {
            Ok(shortened) => {
                let mut record = shortened.unwrap_or(record);
                let series = record.take_series();
                let mut kept = record.clone();
                self.share_baseline_id(&mut kept);
                self.records.push(kept);
                record.restore_series(series);
                let device = record.case.device;
                self.pending_events.entry(device).or_default().push(RunEvent::CaseFinished(Box::new(record)));
                if !self.buffers_events {
                    self.flush_device(device);
                }
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Shares the baseline's id between the records of a group; each arrives from its worker with its own copy.
    fn share_baseline_id(&self, record: &mut Record) {
        let (Some(speedup), Some(last)) = (&mut record.speedup, self.records.last()) else { return };
        let known = [Some(&last.case.id), last.speedup.as_ref().map(|speedup| &speedup.vs)];
        if let Some(id) = known.into_iter().flatten().find(|id| **id == speedup.vs) {
            speedup.vs = id.clone();
        }
    }
}

impl WorkerListener for RecordWriter<'_> {
    fn on_event(&mut self, event: WorkerEvent) {
        match event {
            WorkerEvent::CaseFinished(record) => self.write(*record),
            WorkerEvent::Progress { case, stage } => self.listener.on_event(RunEvent::Progress { case, stage }),
            WorkerEvent::KernelsTraced { .. } => {}
        }
    }

    fn interrupted(&self) -> bool {
        self.error.is_some() || self.listener.interrupted()
    }
}
