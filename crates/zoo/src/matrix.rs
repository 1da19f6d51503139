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
        let (before, after) = self.values.split_at(self.values.len() - rows * self.cols);
        let values: Vec<f32> = after.par_iter().chain(before).copied().collect();
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
