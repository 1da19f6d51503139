//! Where a run's records arrive: each is put on disk, then shown.

use super::show::Show;
use crate::host::now;
use crate::worker::{Event, Listener};
use calorimeter_case::{CaseId, Record, Status};
use calorimeter_sinks::{Journal, SinkError};
use std::collections::HashMap;

/// Puts each record on disk, then shows it.
pub struct Desk<'a> {
    pub journal: Journal,
    /// Without their series, which are on disk.
    pub records: Vec<Record>,
    /// How the cases ended that ended in an earlier part of the run.
    pub earlier: HashMap<CaseId, Status>,
    pub show: &'a mut dyn Show,
    /// When the turn of the group came that is measured.
    pub turn: String,
    /// Why records can no longer be put on disk.
    pub error: Option<SinkError>,
}

impl Desk<'_> {
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
        record.outcome.started = Some(self.turn.clone());
        record.outcome.ended = Some(now().to_rfc3339());
        match self.journal.append(&record) {
            Ok(shortened) => {
                let mut record = shortened.unwrap_or(record);
                self.show.record(&record);
                record.take_series();
                record.outcome.warnings.shrink_to_fit();
                self.share_baseline(&mut record);
                self.records.push(record);
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
            Event::Touched { case, stage } => self.show.touch(&case, stage),
            Event::Ended(record) => self.take(*record),
            Event::Saw { .. } => {}
        }
    }

    fn interrupted(&self) -> bool {
        self.error.is_some() || self.show.interrupted()
    }
}
