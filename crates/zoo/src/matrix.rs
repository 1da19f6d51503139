//! A matrix on the host.

use rayon::prelude::*;
use std::sync::Arc;

/// Row-major values.
#[derive(Debug, Clone, PartialEq)]
pub struct Matrix {
    /// Number of rows.
    pub rows: usize,
    /// Number of columns.
    pub cols: usize,
    /// `rows * cols` values.
    pub values: Arc<Vec<f32>>,
}

impl Matrix {
    /// The same with its rows moved on by so many; the last come first.
    pub(crate) fn moved_on(&self, rows: usize) -> Self {
        let values = moved_on(&self.values, self.values.len(), rows * self.cols);
        Self { rows: self.rows, cols: self.cols, values: values.into() }
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.cols..(row + 1) * self.cols]
    }

    /// One row in double precision.
    pub fn exact_row(&self, row: usize) -> Vec<f64> {
        self.row(row).iter().map(|&x| f64::from(x)).collect()
    }
}

/// Lines of so many values, each moved on by some of them; the last come first.
pub(crate) fn moved_on(values: &[f32], line: usize, by: usize) -> Vec<f32> {
    const SHARE: usize = 1 << 16;
    let copy = |to: &mut [f32], from: &[f32]| {
        to.par_chunks_mut(SHARE).zip(from.par_chunks(SHARE)).for_each(|(to, from)| to.copy_from_slice(from));
    };
    let mut moved = vec![0.0; values.len()];
    moved.par_chunks_mut(line.max(1)).zip(values.par_chunks(line.max(1))).for_each(|(moved, values)| {
        let (before, after) = values.split_at(values.len() - by);
        let (first, rest) = moved.split_at_mut(by);
        copy(first, after);
        copy(rest, before);
    });
    moved
}
