//! Parts shared by the matmul operators: axes, weights, buffer set rotation and reference.

use crate::reference::dot;
use crate::{Fill, Matrix, Operand, OutputSample, RotationAxis, SetRotation, Spec};
use rayon::prelude::*;

pub(super) const AXES: &[&str] = &["m", "k", "n"];

/// Axes m, k and n.
pub(super) fn size(spec: &Spec) -> (u64, u64, u64) {
    (spec.axis("m"), spec.axis("k"), spec.axis("n"))
}

/// Axes m, k and n as `usize`.
pub(super) fn dims(spec: &Spec) -> [usize; 3] {
    let (m, k, n) = size(spec);
    [m, k, n].map(|side| side as usize)
}

/// Checks that k and n are multiples of 16, as cuBLASLt requires for e4m3.
pub(super) fn check_float8_alignment(spec: &Spec) -> Result<(), String> {
    match [("k", spec.axis("k")), ("n", spec.axis("n"))].into_iter().find(|(_, size)| !size.is_multiple_of(16)) {
        Some((axis, size)) => Err(format!(
            "`native` multiplies e4m3 by cuBLASLt, which requires k and n in multiples of 16; {axis} is {size}"
        )),
        None => Ok(()),
    }
}

/// Weight matrix with uniform elements of variance 1 / depth. Outputs are then about as large as inputs at any depth,
/// and f16 does not overflow.
pub(super) fn weight(rows: u64, cols: u64, depth: u64, spec: &Spec) -> Operand {
    Operand::normal(rows, cols, spec.element).with_fill(Fill::Symmetric((3.0 / depth as f32).sqrt()))
}

/// Buffer set rotation of a matmul. If m > 1, rows of the output rotate and inputs follow `by_rows`; otherwise columns
/// rotate and inputs follow `by_columns`.
pub(super) fn set_rotation(spec: &Spec, by_rows: &[RotationAxis], by_columns: &[RotationAxis]) -> SetRotation {
    let (m, _, n) = size(spec);
    if m > 1 {
        SetRotation::new(m, by_rows, &[RotationAxis::Rows])
    } else {
        SetRotation::new(n, by_columns, &[RotationAxis::Columns])
    }
}

/// Copies one column.
pub(super) fn column(matrix: &Matrix, col: usize) -> Vec<f32> {
    (0..matrix.rows).map(|row| matrix.row(row)[col]).collect()
}

/// Sampled elements of a matmul, given functions that return a row of the left and a column of the right operand.
pub(super) fn sampled_products(
    sample: &OutputSample,
    row: impl Fn(usize) -> Vec<f32> + Sync,
    col: impl Fn(usize) -> Vec<f32> + Sync,
) -> Vec<f64> {
    let cols: Vec<Vec<f32>> = sample.cols.par_iter().map(|&index| col(index)).collect();
    sample.map_rows(|index| {
        let row: Vec<f64> = row(index).into_iter().map(f64::from).collect();
        cols.iter().map(|col| dot(&row, col)).collect()
    })
}
