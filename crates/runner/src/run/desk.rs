//! Where a run's records arrive: each is put on disk, then told.

use crate::host::now;
use crate::plan::{Group, PlannedCase};
use crate::worker::{Event, Listener};
use calorimeter_case::{CaseId, Device, Record, Status};
use calorimeter_sinks::{Journal, SinkError};
use std::collections::{BTreeMap, HashMap};

/// Puts each record on disk, then tells of it.
pub struct Desk<'a> {
    pub journal: Journal,
    /// Without their series, which are on disk.
    pub records: Vec<Record>,
    /// How the cases ended that ended in an earlier part of the run.
    earlier: HashMap<CaseId, Status>,
    pub listener: &'a mut dyn Listener,
    /// When the turn of the group came that a device measures.
    turns: BTreeMap<Device, String>,
    /// What is on disk and not told yet, device by device, where devices work at the same time: whoever reads along
    /// sees the cases that are compared beside each other.
    untold: BTreeMap<Device, Vec<Event>>,
    holds_back: bool,
    /// Why records can no longer be put on disk.
    pub error: Option<SinkError>,
}

impl<'a> Desk<'a> {
    /// One with the records of an earlier part of the run; tells that a run of so many cases begins.
    pub fn new(journal: Journal, mut records: Vec<Record>, cases: usize, listener: &'a mut dyn Listener) -> Self {
        // A list that doubles when it is full holds twice what it needs.
        records.reserve_exact(cases.saturating_sub(records.len()));
        let earlier: HashMap<CaseId, Status> =
            records.iter().map(|record| (record.case.id.clone(), record.outcome.status)).collect();
        listener.hear(Event::Begun { cases, already: earlier.keys().cloned().collect() });
        let (turns, untold) = (BTreeMap::new(), BTreeMap::new());
        Self { journal, records, earlier, listener, turns, untold, holds_back: false, error: None }
    }

    /// Whether an earlier part of the run has ended every case of a group.
    pub fn is_complete(&self, group: &Group) -> bool {
        group.cases().iter().all(|planned| self.earlier.contains_key(planned.id()))
    }

    /// From now on records are told when those of their group are complete, until [`Self::hold_nothing_back`].
    pub fn hold_back(&mut self) {
        self.holds_back = true;
    }

    /// Tells everything that is on disk, and each record from now on as it comes.
    pub fn hold_nothing_back(&mut self) {
        self.holds_back = false;
        std::mem::take(&mut self.untold).into_values().flatten().for_each(|event| self.listener.hear(event));
    }

    /// Tells of the records of a device whose group is complete.
    pub fn tell(&mut self, device: Device) {
        self.untold.remove(&device).into_iter().flatten().for_each(|event| self.listener.hear(event));
    }

    /// Begins a group of a device: what is known not to run is recorded without asking it.
    pub fn begin(&mut self, group: &Group, device: Device) {
        self.turns.insert(device, now().to_rfc3339());
        let refused = |planned: &PlannedCase| {
            let reason = planned.supported().err()?;
            Some(Record::without_time(planned.case(), Status::Unsupported, reason))
        };
        group.cases().iter().filter_map(refused).for_each(|record| self.take(record));
    }

    /// Whether a case is still to be measured, or again: what was measured in an earlier part of the run is measured
    /// beside the rest of its group, since arms must alternate to be compared.
    pub fn wants(&self, case: &CaseId) -> bool {
        self.earlier.get(case).is_none_or(|status| *status == Status::Ok)
    }

    /// Takes a record, unless an earlier part of the run has one of the same case.
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

    /// Each record of a group came from its worker with a copy of the baseline's id of its own.
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
