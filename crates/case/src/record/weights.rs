//! Weight storage.

use super::column::{CellReader, Column};
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
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "weight_bytes",
            field: "weight_bytes",
            unit: "bytes",
            doc: "weights on the device as stored: quantized values, scales, zero points, and the indices of values or blocks that remain after pruning",
            read: CellReader::Count(|weights| weights.weight_bytes),
        },
        Column {
            name: "baseline_weight_bytes",
            field: "baseline_weight_bytes",
            unit: "bytes",
            doc: "weights in the baseline",
            read: CellReader::Count(|weights| weights.baseline_weight_bytes),
        },
        Column {
            name: "quantise_ns",
            field: "quantise_ns",
            unit: "ns",
            doc: "host time for pruning and quantizing the weights; absent if there is none",
            read: CellReader::Count(|weights| weights.quantise_ns),
        },
    ];
}
