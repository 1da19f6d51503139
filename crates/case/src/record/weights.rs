//! Weights as they are stored.

use serde::{Deserialize, Serialize};

/// Weights as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// Bytes of the weights with their scales, as stored by the recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_bytes: Option<u64>,
    /// Bytes of the same weights in the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_weight_bytes: Option<u64>,
    /// Time in which the host pruned and quantised the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantise_ns: Option<u64>,
}
