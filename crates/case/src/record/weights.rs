//! Weight storage.

use super::column::{Column, columns};
use serde::{Deserialize, Serialize};

/// Weight storage of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    /// Bytes of the weights and scales, as stored by the recipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_bytes: Option<u64>,
    /// Bytes of the same weights in the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_weight_bytes: Option<u64>,
    /// Host time for pruning and quantizing the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantise_ns: Option<u64>,
}

impl Weights {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |weights|
        "weight_bytes" in "bytes": Count(weights.weight_bytes),
            "weights on the device as stored: quantized values, scales, zero points, and the indices of values or blocks that remain after pruning";
        "baseline_weight_bytes" in "bytes": Count(weights.baseline_weight_bytes), "weights in the baseline";
        "quantise_ns" in "ns": Count(weights.quantise_ns),
            "host time for pruning and quantizing the weights; absent if there is none";
    };
}
