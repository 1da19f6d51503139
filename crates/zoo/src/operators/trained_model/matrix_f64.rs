//! Row-major matrices in double precision.

use crate::Matrix;
use crate::exact_matmul::{StridedView, matmul};
use rayon::prelude::*;

/// Row-major matrix in double precision.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixF64 {
    pub cols: usize,
    pub values: Vec<f64>,
}

impl MatrixF64 {
    /// Matrix of zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { cols, values: vec![0.0; rows * cols] }
    }

    /// Copies the given rows of a matrix.
    pub fn from_rows(matrix: &Matrix, rows: &[usize]) -> Self {
        Self { cols: matrix.cols, values: rows.iter().flat_map(|&row| matrix.exact_row(row)).collect() }
    }

    /// Number of rows.
    pub fn row_count(&self) -> usize {
        self.values.len() / self.cols
    }

    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.cols..][..self.cols]
    }

    /// Applies a function to each element.
    pub fn map(&self, of: impl Fn(f64) -> f64 + Sync) -> Self {
        Self { cols: self.cols, values: self.values.par_iter().map(|&value| of(value)).collect() }
    }

    /// Combines the elements of two matrices.
    pub fn zip_map(&self, other: &Self, of: impl Fn(f64, f64) -> f64 + Sync) -> Self {
        let both = self.values.par_iter().zip(&other.values);
        Self { cols: self.cols, values: both.map(|(&a, &b)| of(a, b)).collect() }
    }

    /// Sum of two matrices.
    pub fn plus(&self, other: &Self) -> Self {
        self.zip_map(other, |a, b| a + b)
    }

    /// Applies a function to each row and its index.
    pub fn map_rows(&self, of: impl Fn(usize, &[f64]) -> Vec<f64> + Sync) -> Self {
        let rows = self.values.par_chunks(self.cols).enumerate();
        Self { cols: self.cols, values: rows.flat_map_iter(|(row, values)| of(row, values)).collect() }
    }

    /// Sum of all rows, as one row.
    pub fn column_sums(&self) -> Self {
        let mut sums = Self::zeros(1, self.cols);
        for row in self.values.chunks(self.cols) {
            sums.values.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        sums
    }

    pub fn transpose(&self) -> Self {
        let (rows, cols) = (self.row_count(), self.cols);
        let mut result = Self::zeros(cols, rows);
        // A tile of columns at a time, so that cache lines are used while they are cached.
        let tiles = result.values.par_chunks_mut(TILE_COLUMNS * rows).enumerate();
        tiles.for_each(|(tile, result)| {
            let first = tile * TILE_COLUMNS;
            for (row, values) in self.values.chunks(cols).enumerate() {
                let columns = &values[first..cols.min(first + TILE_COLUMNS)];
                columns.iter().enumerate().for_each(|(col, &value)| result[col * rows + row] = value);
            }
        });
        result
    }

    /// self otherᵀ.
    pub fn matmul_transposed(&self, other: &Self) -> Self {
        let (m, k, n) = (self.row_count(), self.cols, other.row_count());
        let values = matmul(
            [m, k, n],
            StridedView::row_major(&self.values, k),
            StridedView::row_major(&other.values, k).transposed(),
        );
        Self { cols: n, values }
    }

    /// self other.
    pub fn matmul(&self, other: &Self) -> Self {
        let (m, k, n) = (self.row_count(), self.cols, other.cols);
        let values =
            matmul([m, k, n], StridedView::row_major(&self.values, k), StridedView::row_major(&other.values, n));
        Self { cols: n, values }
    }

    /// selfᵀ other.
    pub fn transposed_matmul(&self, other: &Self) -> Self {
        let (m, k, n) = (self.cols, self.row_count(), other.cols);
        let values = matmul(
            [m, k, n],
            StridedView::row_major(&self.values, m).transposed(),
            StridedView::row_major(&other.values, n),
        );
        Self { cols: n, values }
    }
}

/// Columns per tile of the transpose: a few cache lines.
const TILE_COLUMNS: usize = 32;

/// Dot product with eight partial sums, since the compiler may not reorder floating-point additions.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a8.zip(b8) {
        for at in 0..8 {
            sums[at] += a[at] * b[at];
        }
    }
    sums.iter().sum::<f64>() + rest
}
