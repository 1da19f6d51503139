//! What happens while cases are worked on, and who listens.

use calorimeter_case::{CaseId, Record};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something that happened in a run, almost always to a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A run begins. Workers do not say this.
    Begun {
        /// How many cases it has.
        cases: usize,
        /// Those that have ended in an earlier part of it.
        already: Vec<CaseId>,
    },
    /// A case is being touched.
    Touched {
        /// Which.
        case: CaseId,
        /// What is done to it.
        stage: Stage,
    },
    /// What several devices are at that work at the same time. Workers do not say this.
    AtWork(Vec<(CaseId, Stage)>),
    /// The kernels of a case were looked at.
    Saw {
        /// Which.
        case: CaseId,
        /// What ran.
        kernels: SeenKernels,
    },
    /// A case has ended. Whoever listens to a run hears it when the record is on disk.
    Ended(Box<Record>),
}

/// Hears of every event, and may stop the work.
pub trait Listener {
    /// Something happened.
    fn hear(&mut self, event: Event);

    /// Whether to stop: cases without a record are left for another time.
    fn interrupted(&self) -> bool {
        false
    }

    /// A case is being touched.
    fn touch(&mut self, case: &CaseId, stage: Stage) {
        self.hear(Event::Touched { case: case.clone(), stage });
    }
}

/// The kernels of a few passes in the order in which they ran, each with its name and its nanoseconds; each was waited
/// for, so what stood between them is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeenKernels {
    /// Passes.
    pub passes: u32,
    /// Kernels.
    pub kernels: Vec<(String, u64)>,
}

/// What is being done to a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Making tensors and quantizing.
    Open,
    /// First launches: kernels are compiled and tuned.
    Tune,
    /// Comparing the output with the reference, which the host computes first.
    Judge,
    /// Finding the device's peaks, once for each device and kind of number.
    Peaks,
    /// Finding out how many launches a window holds, and launching until times agree.
    WarmUp,
    /// Timing.
    Measure,
    /// Recording a trace, or the memory.
    Profile,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Open => "preparing",
            Self::Tune => "tuning",
            Self::Judge => "checking",
            Self::Peaks => "finding the device's peaks",
            Self::WarmUp => "warming up",
            Self::Measure => "measuring",
            Self::Profile => "profiling",
        })
    }
}
