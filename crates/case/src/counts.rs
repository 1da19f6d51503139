//! Operations and bytes that are counted and not measured.

use serde::{Deserialize, Serialize};

/// Operations and bytes as another program counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Floating-point operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<u64>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What fusing a computation should save, by a model of its traffic: nothing here is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FusionModel {
    /// What is fused, one name for each separate kernel.
    pub operators: Vec<String>,
    /// Bytes that separate kernels move.
    pub unfused_bytes: u64,
    /// Bytes that one kernel moves.
    pub fused_bytes: u64,
}
