//! What matrix products have in common: axes, weights, and the reference of a sample.

use crate::reference::dot;
use crate::{Along, Fill, Matrix, Moves, Operand, Sample, Spec};
use rayon::prelude::*;

pub(super) const AXES: &[&str] = &["m", "k", "n"];

/// m, k and n.
pub(super) fn size(spec: &Spec) -> (u64, u64, u64) {
    (spec.axis("m"), spec.axis("k"), spec.axis("n"))
}

/// The same as counts.
pub(super) fn sides(spec: &Spec) -> [usize; 3] {
    let (m, k, n) = size(spec);
    [m, k, n].map(|side| side as usize)
}

/// Whether cuBLASLt multiplies e4m3 of this size.
pub(super) fn in_sixteens(spec: &Spec) -> Result<(), String> {
    match [("k", spec.axis("k")), ("n", spec.axis("n"))].into_iter().find(|(_, size)| !size.is_multiple_of(16)) {
        Some((axis, size)) => Err(format!(
            "`native` multiplies e4m3 by cuBLASLt, which takes k and n in multiples of 16; {axis} is {size}"
        )),
        None => Ok(()),
    }
}

/// A matrix under which an output is about as large as an input, whatever the depth: f16 stays within its range.
pub(super) fn weight(rows: u64, cols: u64, depth: u64, spec: &Spec) -> Operand {
    Operand::normal(rows, cols, spec.element).filled(Fill::Around((3.0 / depth as f32).sqrt()))
}

/// Where there are several rows they move, with what `by_rows` says of each input, and else columns, with `by_columns`.
pub(super) fn moves(spec: &Spec, by_rows: &[Along], by_columns: &[Along]) -> Moves {
    let (m, _, n) = size(spec);
    if m > 1 { Moves::new(m, by_rows, &[Along::Rows]) } else { Moves::new(n, by_columns, &[Along::Columns]) }
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
