//! Writer of records: appends each to the journal, then notifies the listener.

use crate::host::now;
use crate::plan::{Group, PlannedCase};
use crate::worker::{Event, Listener};
use calorimeter_case::{CaseId, Device, Record, Status};
use calorimeter_sinks::{Journal, SinkError};
use std::collections::{BTreeMap, HashMap};

/// Appends each record to the journal, then notifies the listener.
pub struct Desk<'a> {
    pub journal: Journal,
    /// Records without their series, which are on disk.
    pub records: Vec<Record>,
    /// Status of cases that an earlier part of the run finished.
    earlier: HashMap<CaseId, Status>,
    pub listener: &'a mut dyn Listener,
    /// Start time of the current group of each device.
    turns: BTreeMap<Device, String>,
    /// Events of records on disk that are not sent yet, per device. Buffering keeps the cases of a group adjacent in
    /// the output when several devices are busy.
    untold: BTreeMap<Device, Vec<Event>>,
    holds_back: bool,
    /// Error after which no records are written.
    pub error: Option<SinkError>,
}

impl<'a> Desk<'a> {
    /// Creates a writer with the records of an earlier part of the run; sends the event that a run of `cases` cases
    /// starts.
    pub fn new(journal: Journal, mut records: Vec<Record>, cases: usize, listener: &'a mut dyn Listener) -> Self {
        // Exact capacity: a vector that grows by doubling may allocate twice the memory.
        records.reserve_exact(cases.saturating_sub(records.len()));
        let earlier: HashMap<CaseId, Status> =
            records.iter().map(|record| (record.case.id.clone(), record.outcome.status)).collect();
        listener.hear(Event::Begun { cases, already: earlier.keys().cloned().collect() });
        let (turns, untold) = (BTreeMap::new(), BTreeMap::new());
        Self { journal, records, earlier, listener, turns, untold, holds_back: false, error: None }
    }

    /// True if an earlier part of the run finished every case of the group.
    pub fn is_complete(&self, group: &Group) -> bool {
        group.cases().iter().all(|planned| self.earlier.contains_key(planned.id()))
    }

    /// Buffers events until their group is complete; ends with [`Self::hold_nothing_back`].
    pub fn hold_back(&mut self) {
        self.holds_back = true;
    }

    /// Sends all buffered events and stops buffering.
    pub fn hold_nothing_back(&mut self) {
        self.holds_back = false;
        std::mem::take(&mut self.untold).into_values().flatten().for_each(|event| self.listener.hear(event));
    }

    /// Sends the buffered events of a device, whose group is complete.
    pub fn tell(&mut self, device: Device) {
        self.untold.remove(&device).into_iter().flatten().for_each(|event| self.listener.hear(event));
    }

    /// Starts a group of a device. Unsupported cases are recorded immediately.
    pub fn begin(&mut self, group: &Group, device: Device) {
        self.turns.insert(device, now().to_rfc3339());
        let refused = |planned: &PlannedCase| {
            let reason = planned.supported().err()?;
            Some(Record::without_time(planned.case(), Status::Unsupported, reason))
        };
        group.cases().iter().filter_map(refused).for_each(|record| self.take(record));
    }

    /// True if a case must be measured. Successful cases of an earlier part are measured again with the remainder of
    /// their group, because comparisons require interleaving.
    pub fn wants(&self, case: &CaseId) -> bool {
        self.earlier.get(case).is_none_or(|status| *status == Status::Ok)
    }

    /// Writes a record, unless an earlier part of the run has one of the case.
    pub fn take(&mut self, mut record: Record) {
        if self.earlier.contains_key(&record.case.id) || self.error.is_some() {
            return;
        }
        record.outcome.started = self.turns.get(&record.case.device).cloned();
        record.outcome.ended = Some(now().to_rfc3339());
        match self.journal.append(&record) {
            Ok(shortened) => {
                let mut record = shortened.unwrap_or(record);
                let series = record.take_series();
                let mut kept = record.clone();
                self.share_baseline(&mut kept);
                self.records.push(kept);
                record.put_series(series);
                let device = record.case.device;
                self.untold.entry(device).or_default().push(Event::Ended(Box::new(record)));
                if !self.holds_back {
                    self.tell(device);
                }
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Shares the baseline's id between the records of a group; each arrives from its worker with its own copy.
    fn share_baseline(&self, record: &mut Record) {
        let (Some(speedup), Some(last)) = (&mut record.speedup, self.records.last()) else { return };
        let known = [Some(&last.case.id), last.speedup.as_ref().map(|speedup| &speedup.vs)];
        if let Some(id) = known.into_iter().flatten().find(|id| **id == speedup.vs) {
            speedup.vs = id.clone();
        }
    }
}

impl Listener for Desk<'_> {
    fn hear(&mut self, event: Event) {
        match event {
            Event::Ended(record) => self.take(*record),
            Event::Touched { .. } => self.listener.hear(event),
            Event::Begun { .. } | Event::AtWork(_) | Event::Saw { .. } => {}
        }
    }

    fn interrupted(&self) -> bool {
        self.error.is_some() || self.listener.interrupted()
    }
}
