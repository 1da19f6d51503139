//! How far outputs are from their references.

use super::column::{Column, Read};
use super::number::no_number;
use serde::{Deserialize, Serialize};

/// How far the output is from the unquantized model, and the kernel from its own reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Signal to quantization noise in dB. Infinite, so left out, when the output is exact.
    #[serde(default, skip_serializing_if = "no_number")]
    pub sqnr_db: Option<f64>,
    /// L2 norm of the error over that of the reference.
    #[serde(default, skip_serializing_if = "no_number")]
    pub rel_l2: Option<f64>,
    /// The largest absolute error of one element.
    #[serde(default, skip_serializing_if = "no_number")]
    pub max_abs: Option<f64>,
    /// Cosine of the angle between output and reference.
    #[serde(default, skip_serializing_if = "no_number")]
    pub cosine: Option<f64>,
    /// Relative L2 error against the same quantized operands: the error of the kernel alone.
    #[serde(default, skip_serializing_if = "no_number")]
    pub kernel_rel_l2: Option<f64>,
}

impl Accuracy {
    /// The output equals the reference, which makes the SQNR infinite and hence absent.
    pub fn is_exact(&self) -> bool {
        self.rel_l2 == Some(0.0)
    }
}

impl Accuracy {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "sqnr_db",
            field: "accuracy.sqnr_db",
            unit: "dB",
            doc: "signal over the error against the unquantized model; absent for an exact output, whose error is zero",
            read: Read::Number(|accuracy| accuracy.sqnr_db),
        },
        Column {
            name: "rel_l2",
            field: "accuracy.rel_l2",
            unit: "",
            doc: "L2 norm of the error over that of the reference",
            read: Read::Number(|accuracy| accuracy.rel_l2),
        },
        Column {
            name: "max_abs",
            field: "accuracy.max_abs",
            unit: "",
            doc: "the largest error of one element",
            read: Read::Number(|accuracy| accuracy.max_abs),
        },
        Column {
            name: "cosine",
            field: "accuracy.cosine",
            unit: "",
            doc: "of the angle between output and reference",
            read: Read::Number(|accuracy| accuracy.cosine),
        },
        Column {
            name: "kernel_rel_l2",
            field: "accuracy.kernel_rel_l2",
            unit: "",
            doc: "as `rel_l2`, against the same quantized operands",
            read: Read::Number(|accuracy| accuracy.kernel_rel_l2),
        },
    ];
}
