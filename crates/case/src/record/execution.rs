//! What ran, and which clock saw it.

use super::number::no_number;
use serde::{Deserialize, Serialize};

/// What ran, and which clock saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// The clock that the times were read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopwatch: Option<String>,
    /// The kernel that ran, where it can be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Kernels that ran in one run, where the clock sees them.
    #[serde(default, skip_serializing_if = "no_number")]
    pub kernel_launches: Option<f64>,
    /// What became of a pattern that is worth fusing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fusion_state: Option<FusionState>,
    /// What the autotuner decided for the case: the problem and the candidate that was fastest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub autotune: Vec<String>,
    /// The buffer sets that the launches go through in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<Rotation>,
}

/// What became of a pattern that is worth fusing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FusionState {
    /// Fewer kernels ran than unfused.
    Fused,
    /// As many ran, or more.
    NotFused,
}

impl FusionState {
    /// The word used in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fused => "fused",
            Self::NotFused => "not-fused",
        }
    }
}

/// The buffer sets of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// How many sets there are.
    pub sets: u32,
    /// Bytes that one run touches at least.
    pub bytes: u64,
    /// The cache that the sets together should exceed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_bytes: Option<u64>,
}
