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
        /// Where tuned kernels are kept: a folder for this device alone.
        tuning: Option<PathBuf>,
    },
    /// Measure these together.
    Measure(Box<Assignment>),
}

/// A group, or what is left of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The cases; all share workload, shape, dtype and device.
    pub cases: Vec<Case>,
    /// For each case, the position of the one it is compared with.
    pub against: Vec<Option<usize>>,
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
    /// Finding out how many launches a window holds, and launching until times agree.
    WarmUp,
    /// Timing.
    Measure,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Open => "preparing",
            Self::Tune => "tuning",
            Self::WarmUp => "warming up",
            Self::Measure => "measuring",
        })
    }
}
