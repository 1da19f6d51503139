//! Protocol between a run and its workers: one JSON object per line.

use super::poison::PoisonCause;
use super::{TracedKernels, WorkerEvent};
use crate::mock::MockRule;
use calorimeter_case::{Case, CaseId, TuningLevel};
use calorimeter_external::RegisteredProgram;
use calorimeter_probe::devices::DeviceFacts;
use calorimeter_recipes::{QuantConfig, RecipeVariant};
use calorimeter_timing::Options;
use calorimeter_zoo::{Task, ZooError};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Command from the run to a worker, over standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerCommand {
    /// Configuration; always the first command.
    Configure {
        /// Descriptor of the inherited progress file.
        position: i32,
        /// Persistent caches.
        caches: WorkerCaches,
        /// True if the runtime times every kernel, which only [`AssignmentPurpose::TraceKernels`] needs.
        trace_kernels: bool,
        /// Programs with implementations.
        external: Vec<RegisteredProgram>,
    },
    /// Run an assignment.
    Run(Box<Assignment>),
}

/// Message from a worker to the run, over the pipe that was its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum WorkerMessage {
    /// The worker is alive.
    Heartbeat,
    /// An event of a case.
    Event(WorkerEvent),
    /// A case left the process in an untrusted state; the worker exits.
    Poisoned {
        /// Id of the case.
        case: CaseId,
        /// Cause.
        cause: PoisonCause,
        /// Reason for the reader of the record.
        reason: String,
    },
    /// The assignment is finished.
    Done,
}

/// Persistent caches of workers, and options that depend on them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerCaches {
    /// Autotune cache directory; one per device.
    #[serde(default, with = "crate::path_serde::option")]
    pub autotune_dir: Option<PathBuf>,
    /// Rounding of sizes in autotune keys.
    #[serde(default)]
    pub tuning_level: TuningLevel,
    /// Directory of measured peaks.
    #[serde(default, with = "crate::path_serde::option")]
    pub peaks_dir: Option<PathBuf>,
    /// True if kernels without a cached decision must not be tuned.
    pub forbid_tuning: bool,
}

/// Purpose of an assignment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AssignmentPurpose {
    /// Open and check each case without timing it.
    Check,
    /// Check and time each case.
    Measure(Options),
    /// Time a case without gate, inspections and peaks, to detect interference between devices.
    ProbeInterference(Options),
    /// Trace the kernels of each case instead of recording it: see [`TracedKernels`].
    TraceKernels,
}

impl AssignmentPurpose {
    /// Measurement options; `None` if the cases are not timed.
    pub fn timing(&self) -> Option<&Options> {
        match self {
            Self::Measure(options) | Self::ProbeInterference(options) => Some(options),
            Self::Check | Self::TraceKernels => None,
        }
    }

    /// True if the cases are timed.
    pub fn is_timed(&self) -> bool {
        self.timing().is_some()
    }
}

/// Group of cases, or its remainder, for one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// Cases with equal task and device.
    pub cases: Vec<AssignedCase>,
    /// Facts about the device.
    pub device: DeviceFacts,
    /// Folder of the run, for traces and memory profiles.
    #[serde(default, with = "crate::path_serde::option")]
    pub run_dir: Option<PathBuf>,
    /// Purpose, which selects the steps of each case.
    pub purpose: AssignmentPurpose,
    /// Rules of the mock device.
    pub mock: Vec<MockRule>,
    /// True if other devices of the host are busy concurrently.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub concurrent_devices: bool,
    /// Cases of the group that is likely to be assigned next, whose inputs may be prefetched meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<AssignedCase>,
}

/// Case with the additional data that its worker needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignedCase {
    /// Case to measure, for its record.
    pub case: Case,
    /// Computation to measure.
    pub spec: CaseSpec,
    /// Id of its baseline.
    pub baseline: Option<CaseId>,
    /// Number of buffer sets that its launches rotate through.
    pub sets: u32,
    /// Kernels traced by another worker, if the stopwatch of this one reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<TracedKernels>,
}

/// Computation of a case: a task and the quantization of its layers. Names are parsed and checked once, when an
/// assignment is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "(Task, RecipeVariant)", into = "(Task, RecipeVariant)")]
pub struct CaseSpec {
    /// Model, operator or foreign work at a size.
    pub task: Task,
    /// Recipe with its sparsity.
    pub variant: RecipeVariant,
    /// Quantization of the layers by the recipe.
    pub treatment: QuantConfig,
}

/// Fails if the task does not exist with this recipe or sparsity.
impl TryFrom<(Task, RecipeVariant)> for CaseSpec {
    type Error = ZooError;

    fn try_from((task, variant): (Task, RecipeVariant)) -> Result<Self, ZooError> {
        Ok(Self { treatment: task.treatment(variant)?, task, variant })
    }
}

impl From<CaseSpec> for (Task, RecipeVariant) {
    fn from(CaseSpec { task, variant, .. }: CaseSpec) -> Self {
        (task, variant)
    }
}

impl Assignment {
    /// Returns the assignment restricted to cases that satisfy `keep`.
    pub fn filter_cases(&self, keep: impl Fn(&CaseId) -> bool) -> Self {
        let cases = self.cases.iter().filter(|assigned| keep(&assigned.case.id)).cloned().collect();
        Self { cases, ..self.clone() }
    }
}
