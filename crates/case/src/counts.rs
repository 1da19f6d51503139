//! Operation and byte counts that are computed, not measured.

use serde::{Deserialize, Serialize};

/// Operations and bytes as another benchmark counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedCounts {
    /// Floating-point operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flops: Option<u64>,
    /// Bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// Traffic of a fusion pattern, by a model; nothing is measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FusionModel {
    /// Fused operators, one name per separate kernel.
    pub operators: Vec<String>,
    /// Bytes moved by separate kernels.
    pub unfused_bytes: u64,
    /// Bytes moved by one fused kernel.
    pub fused_bytes: u64,
}
