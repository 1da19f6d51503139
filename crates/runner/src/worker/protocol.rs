//! What a run and its worker processes say to each other: one JSON object a line.

use crate::mock::Rule;
use calorimeter_sinks::{Case, Record};
use calorimeter_timing::Options;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// From the run to the worker, over its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// First of all.
    Hello {
        /// The file that says which case is being touched.
        position: PathBuf,
        /// What outlives the worker.
        keep: Keep,
    },
    /// Measure these together.
    Measure(Box<Assignment>),
}

/// What workers keep for later ones, and where.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Keep {
    /// Folder of tuned kernels; a worker's own is for its device alone.
    pub tuning: Option<PathBuf>,
    /// Folder of devices' measured peaks.
    pub peaks: Option<PathBuf>,
    /// Whether a kernel that was not tuned before must not be tuned now.
    pub never_tune: bool,
    /// Whether this worker times nothing and has every kernel timed by the runtime instead: see [`Seen`].
    pub look: bool,
}

/// The kernels of a few passes in the order in which they ran, each with its name and its nanoseconds; each was waited
/// for, so what stood between them is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seen {
    /// Passes.
    pub passes: u32,
    /// Kernels.
    pub kernels: Vec<(String, u64)>,
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
}

/// A group, or what is left of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The cases; all share workload, shape, dtype and device.
    pub cases: Vec<Case>,
    /// For each case, the position of the one it is compared with.
    pub against: Vec<Option<usize>>,
    /// The device, as it was found.
    pub device: DeviceFacts,
    /// For each case, how many buffer sets its launches go through.
    pub sets: Vec<u32>,
    /// For each case, the kernels that another worker saw, where this one's clocks see none.
    #[serde(default)]
    pub seen: Vec<Option<Seen>>,
    /// The run's folder, where traces and memory profiles go.
    pub folder: Option<PathBuf>,
    /// How to measure; without it each case is opened and checked and nothing is timed.
    pub timing: Option<Options>,
    /// Seed of the tensors.
    pub seed: u64,
    /// What the mock device does.
    pub mock: Vec<Rule>,
}

impl Assignment {
    /// The cases at these positions, comparisons renumbered.
    pub fn only(&self, positions: &[usize]) -> Self {
        let renumber = |old: usize| positions.iter().position(|&position| position == old);
        Self {
            cases: positions.iter().map(|&position| self.cases[position].clone()).collect(),
            against: positions.iter().map(|&position| self.against[position].and_then(renumber)).collect(),
            sets: positions.iter().map(|&position| self.sets[position]).collect(),
            seen: positions.iter().filter_map(|&position| self.seen.get(position).cloned()).collect(),
            device: self.device.clone(),
            folder: self.folder.clone(),
            timing: self.timing.clone(),
            seed: self.seed,
            mock: self.mock.clone(),
        }
    }
}

/// From the worker to the run, over the pipe that was its standard output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The worker is alive.
    Beat,
    /// The case at this position has ended.
    Record {
        /// Position in the assignment.
        case: usize,
        /// How.
        record: Box<Record>,
    },
    /// The kernels of the case at this position were looked at.
    Seen {
        /// Position in the assignment.
        case: usize,
        /// What ran.
        seen: Seen,
    },
    /// The case at this position left the process in a state that cannot be trusted; the worker ends.
    Poisoned {
        /// Position in the assignment.
        case: usize,
        /// What happened.
        reason: String,
    },
    /// The assignment is finished.
    Done,
}

/// What is being done to a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Making tensors and quantising.
    Open,
    /// First launches: kernels are compiled and tuned; the output is compared with the reference.
    Tune,
    /// Finding the device's peaks, once for each device and kind of number.
    Peaks,
    /// Finding out how many launches a window holds, and launching until times agree.
    WarmUp,
    /// Timing.
    Measure,
    /// Recording a trace, or the memory.
    Profile,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Open => "preparing",
            Self::Tune => "tuning",
            Self::Peaks => "finding the device's peaks before",
            Self::WarmUp => "warming up",
            Self::Measure => "measuring",
            Self::Profile => "profiling",
        })
    }
}
