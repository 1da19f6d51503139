//! Errors of outputs relative to their references.

use super::column::{Column, Field, columns, fields};
use super::number::is_not_finite;
use serde::{Deserialize, Serialize};

/// Error of the output relative to the unquantized model, and of the kernel relative to its own reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Signal to quantization noise ratio in dB. Infinite for an exact output, and then omitted.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub sqnr_db: Option<f64>,
    /// L2 norm of the error divided by the norm of the reference.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub rel_l2: Option<f64>,
    /// Maximum absolute error of one element.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub max_abs: Option<f64>,
    /// Maximum relative error of one element, for work whose elements have a relative tolerance.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub max_rel: Option<f64>,
    /// Cosine of the angle between output and reference.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub cosine: Option<f64>,
    /// Relative L2 error with respect to a reference on the same quantized operands: the error of the kernel only.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub kernel_rel_l2: Option<f64>,
}

impl Accuracy {
    /// True if the output equals the reference, in which case the SQNR is infinite and absent.
    pub fn is_exact(&self) -> bool {
        self.rel_l2 == Some(0.0)
    }
}

impl Accuracy {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |accuracy|
        "sqnr_db" from "accuracy.sqnr_db" in "dB": Number(accuracy.sqnr_db),
            "signal to quantization noise ratio relative to the unquantized model; absent for an exact output";
        "rel_l2" from "accuracy.rel_l2": Number(accuracy.rel_l2),
            "L2 norm of the error divided by the norm of the reference";
        "max_abs" from "accuracy.max_abs": Number(accuracy.max_abs), "maximum absolute error of one element";
        "cosine" from "accuracy.cosine": Number(accuracy.cosine), "cosine of the angle between output and reference";
        "kernel_rel_l2" from "accuracy.kernel_rel_l2": Number(accuracy.kernel_rel_l2),
            "`rel_l2` relative to a reference on the same quantized operands";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "accuracy.max_rel": "number",
            "maximum relative error of one element, for [data sets of flashinfer-bench](flashinfer-bench.md)";
    };
}
