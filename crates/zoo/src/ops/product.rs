//! What matrix products have in common: their axes, and the reference of a sample.

use crate::operator::Spec;
use crate::reference::dot;
use crate::{Matrix, Sample};
use rayon::prelude::*;

pub(super) const AXES: &[&str] = &["m", "k", "n"];

/// m, k and n.
pub(super) fn size(spec: &Spec) -> (u64, u64, u64) {
    (spec.axis("m"), spec.axis("k"), spec.axis("n"))
}

/// One column.
pub(super) fn column(matrix: &Matrix, col: usize) -> Vec<f32> {
    (0..matrix.rows).map(|row| matrix.row(row)[col]).collect()
}

/// The sampled entries of a product, given a row of its left and a column of its right operand.
pub(super) fn products(
    sample: &Sample,
    row: impl Fn(usize) -> Vec<f32> + Sync,
    col: impl Fn(usize) -> Vec<f32> + Sync,
) -> Vec<f64> {
    let cols: Vec<Vec<f32>> = sample.cols.par_iter().map(|&index| col(index)).collect();
    sample.by_rows(|index| {
        let row: Vec<f64> = row(index).into_iter().map(f64::from).collect();
        cols.iter().map(|col| dot(&row, col)).collect()
    })
}
