//! What a run and its worker processes say to each other: one JSON object a line.

use super::{Event, SeenKernels};
use crate::mock::Rule;
use calorimeter_case::{Case, CaseId, TuningLevel};
use calorimeter_timing::Options;
use calorimeter_timing::telemetry::LockedClock;
use calorimeter_zoo::foreign::Foreign;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// From the run to the worker, over its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// First of all.
    Hello {
        /// The number of the inherited file that says which case is being touched.
        position: i32,
        /// What outlives the worker.
        kept: Kept,
    },
    /// Measure these together.
    Measure(Box<Assignment>),
}

/// From the worker to the run, over the pipe that was its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// The worker is alive.
    Beat,
    /// Something happened to a case.
    Event(Event),
    /// A case left the process in a state that cannot be trusted; the worker ends.
    Poisoned {
        /// Which.
        case: CaseId,
        /// What happened.
        reason: String,
    },
    /// The assignment is finished.
    Done,
}

/// What workers keep for later ones, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Folder of tuned kernels; a worker's own is for its device alone.
    #[serde(default, with = "crate::written_path::option")]
    pub tuning: Option<PathBuf>,
    /// How finely sizes are told apart.
    #[serde(default)]
    pub level: TuningLevel,
    /// Folder of devices' measured peaks.
    #[serde(default, with = "crate::written_path::option")]
    pub peaks: Option<PathBuf>,
    /// Whether a kernel that was not tuned before must not be tuned now.
    pub never_tune: bool,
    /// Whether this worker times nothing and has every kernel timed by the runtime instead: see [`SeenKernels`].
    pub look: bool,
}

/// What a worker is told of a device, so that it need not look for others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DeviceFacts {
    /// Tells it from any other.
    pub identity: String,
    /// Driver and versions.
    pub driver: String,
    /// Whether it is a processor that imitates a GPU.
    pub software: bool,
    /// The cache that buffer sets are meant to exceed, in bytes.
    pub cache_bytes: u64,
    /// Where its clock is locked by a run of this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_clock: Option<LockedClock>,
}

/// A group, or what is left of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The cases; all share workload, shape, dtype and device.
    pub cases: Vec<AssignedCase>,
    /// The work of others that they do, if it is that: its name alone tells nobody what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreign: Option<Foreign>,
    /// The device, as it was found.
    pub device: DeviceFacts,
    /// The run's folder, where traces and memory profiles go.
    #[serde(default, with = "crate::written_path::option")]
    pub folder: Option<PathBuf>,
    /// How to measure; without it each case is opened and checked and nothing is timed.
    pub timing: Option<Options>,
    /// Seed of the tensors.
    pub seed: u64,
    /// What the mock device does.
    pub mock: Vec<Rule>,
    /// Whether other devices of the host work at the same time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_company: bool,
    /// Whether only a time is asked for, which no record keeps: nothing is judged, looked at or held against peaks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_probe: bool,
    /// What may be prepared while this is timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
}

/// What is likely to be assigned next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Next {
    /// The cases; all share workload, shape, dtype and device.
    pub cases: Vec<Case>,
    /// Seed of the tensors.
    pub seed: u64,
}

/// A case with what its worker needs to know besides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssignedCase {
    /// The case.
    pub case: Case,
    /// The one that it is compared with.
    pub against: Option<CaseId>,
    /// How many buffer sets its launches go through.
    pub sets: u32,
    /// The kernels that another worker saw, where this one's clocks see none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<SeenKernels>,
}

impl Assignment {
    /// The same with these cases alone.
    pub fn only(&self, keep: impl Fn(&CaseId) -> bool) -> Self {
        let cases = self.cases.iter().filter(|assigned| keep(&assigned.case.id)).cloned().collect();
        Self { cases, ..self.without_cases() }
    }

    fn without_cases(&self) -> Self {
        Self {
            cases: Vec::new(),
            foreign: self.foreign,
            device: self.device.clone(),
            folder: self.folder.clone(),
            timing: self.timing.clone(),
            seed: self.seed,
            mock: self.mock.clone(),
            in_company: self.in_company,
            is_probe: self.is_probe,
            next: self.next.clone(),
        }
    }
}
