//! Events of an assignment, and their listener.

use calorimeter_case::{CaseId, Record, Status};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Event of a case in an assignment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkerEvent {
    /// Work on the case continues.
    Progress {
        /// Id of the case.
        case: CaseId,
        /// Current stage.
        stage: Stage,
    },
    /// The kernels of the case were traced.
    KernelsTraced {
        /// Id of the case.
        case: CaseId,
        /// Traced kernels.
        kernels: TracedKernels,
    },
    /// The case has finished.
    CaseFinished(Box<Record>),
}

impl WorkerEvent {
    /// Case that has finished, with its status: it was recorded, or its kernels were traced.
    pub(super) fn finished_case(&self) -> Option<(&CaseId, Status)> {
        match self {
            Self::CaseFinished(record) => Some((&record.case.id, record.outcome.status)),
            Self::KernelsTraced { case, .. } => Some((case, Status::Ok)),
            Self::Progress { .. } => None,
        }
    }
}

/// Receives every event of an assignment and may stop the work.
pub trait WorkerListener {
    /// Handles an event.
    fn on_event(&mut self, event: WorkerEvent);

    /// True if the work must stop.
    fn interrupted(&self) -> bool {
        false
    }

    /// Reports the current stage of a case.
    fn report_progress(&mut self, case: &CaseId, stage: Stage) {
        self.on_event(WorkerEvent::Progress { case: case.clone(), stage });
    }
}

/// Listener that handles each event and may forward it to another listener, whose interrupt it reports.
pub struct EventFilter<'a, F> {
    listener: &'a mut dyn WorkerListener,
    handle: F,
}

impl<'a, F: FnMut(WorkerEvent, &mut dyn WorkerListener)> EventFilter<'a, F> {
    /// Creates a filter from the other listener and the handler of events.
    pub fn new(listener: &'a mut dyn WorkerListener, handle: F) -> Self {
        Self { listener, handle }
    }
}

impl<F: FnMut(WorkerEvent, &mut dyn WorkerListener)> WorkerListener for EventFilter<'_, F> {
    fn on_event(&mut self, event: WorkerEvent) {
        (self.handle)(event, self.listener);
    }

    fn interrupted(&self) -> bool {
        self.listener.interrupted()
    }
}

/// Kernels of a few passes in launch order, each with its name and nanoseconds. The host synchronized after each, so
/// that gaps between them are unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TracedKernels {
    /// Number of passes.
    pub passes: u32,
    /// Name and nanoseconds of each kernel.
    pub kernels: Vec<(String, u64)>,
}

/// Stage of the work on a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Generating tensors and quantizing.
    Open,
    /// First launches: kernels are compiled and tuned.
    Tune,
    /// Comparing the output with the reference, which the host computes first.
    Check,
    /// Measuring the peaks of the device, once per device and GEMM kind.
    Peaks,
    /// Calibrating the launches per window, and warming up.
    WarmUp,
    /// Timing.
    Measure,
    /// Recording a trace or the memory.
    Profile,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "preparing",
            Self::Tune => "tuning",
            Self::Check => "checking",
            Self::Peaks => "finding the device's peaks",
            Self::WarmUp => "warming up",
            Self::Measure => "measuring",
            Self::Profile => "profiling",
        })
    }
}
