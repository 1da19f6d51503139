//! What operators with matrix products share: sizes, weights, rows in double precision.

use crate::operator::Spec;
use crate::{Fill, Operand};

/// Rows, depth and columns.
pub(super) fn size(spec: &Spec) -> (u64, u64, u64) {
    (spec.axis("m"), spec.axis("k"), spec.axis("n"))
}

/// A matrix under which an output is about as large as an input, whatever the depth: f16 stays within its range.
pub(super) fn weight(rows: u64, cols: u64, depth: u64, spec: &Spec) -> Operand {
    let edge = (3.0 / depth as f32).sqrt();
    Operand::normal(rows, cols, spec.element).filled(Fill::Uniform(-edge, edge))
}

/// The numbers of a row in double precision.
pub(super) fn widened(row: &[f32]) -> Vec<f64> {
    row.iter().map(|&x| f64::from(x)).collect()
}
