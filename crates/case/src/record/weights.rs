//! Weights as they are stored.

use super::column::{Column, Read};
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
    /// Time in which the host pruned and quantized the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantise_ns: Option<u64>,
}

impl Weights {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "weight_bytes",
            field: "weight_bytes",
            unit: "bytes",
            doc: "weights on the device as stored: codes, scales, zeros, and where the values or blocks that pruning left belong",
            read: Read::Count(|weights| weights.weight_bytes),
        },
        Column {
            name: "baseline_weight_bytes",
            field: "baseline_weight_bytes",
            unit: "bytes",
            doc: "the same weights in the baseline",
            read: Read::Count(|weights| weights.baseline_weight_bytes),
        },
        Column {
            name: "quantise_ns",
            field: "quantise_ns",
            unit: "ns",
            doc: "pruning and quantizing the weights on the host; absent where there is none of it",
            read: Read::Count(|weights| weights.quantise_ns),
        },
    ];
}
