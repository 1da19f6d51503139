//! Events of a run, and their listener.

use crate::worker::Stage;
use calorimeter_case::{CaseId, Record};

/// Event of a run; most concern a case.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RunEvent {
    /// A run starts.
    RunStarted {
        /// Number of cases.
        cases: usize,
        /// Cases that an earlier part of the run finished.
        finished: Vec<CaseId>,
    },
    /// Work on a case continues.
    Progress {
        /// Id of the case.
        case: CaseId,
        /// Current stage.
        stage: Stage,
    },
    /// Current stage of every busy device.
    ActiveStages(Vec<(CaseId, Stage)>),
    /// The record of a case is on disk.
    CaseFinished(Box<Record>),
    /// The group of the last finished cases is complete. Cases of a group are compared with each other.
    GroupFinished,
}

/// Receives every event of a run and may stop it.
pub trait RunListener {
    /// Handles an event.
    fn on_event(&mut self, event: RunEvent);

    /// True if the run must stop; cases without a record remain for a later run.
    fn interrupted(&self) -> bool {
        false
    }
}
