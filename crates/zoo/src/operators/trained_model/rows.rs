//! Matrices in double precision.

use crate::Matrix;
use crate::exact_product::{Lying, product};
use rayon::prelude::*;

/// Numbers row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub cols: usize,
    pub values: Vec<f64>,
}

impl Rows {
    /// Zeros.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { cols, values: vec![0.0; rows * cols] }
    }

    /// Some rows of a matrix, one below the other.
    pub fn some_of(matrix: &Matrix, rows: &[usize]) -> Self {
        Self { cols: matrix.cols, values: rows.iter().flat_map(|&row| matrix.exact_row(row)).collect() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.values.len() / self.cols
    }

    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.cols..][..self.cols]
    }

    /// What a function makes of each number.
    pub fn map(&self, of: impl Fn(f64) -> f64 + Sync) -> Self {
        Self { cols: self.cols, values: self.values.par_iter().map(|&value| of(value)).collect() }
    }

    /// What a function makes of each number and that of another matrix at its place.
    pub fn with(&self, other: &Self, of: impl Fn(f64, f64) -> f64 + Sync) -> Self {
        let both = self.values.par_iter().zip(&other.values);
        Self { cols: self.cols, values: both.map(|(&a, &b)| of(a, b)).collect() }
    }

    /// Two matrices added up.
    pub fn plus(&self, other: &Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    /// What a function makes of each row, by its number.
    pub fn by_row(&self, of: impl Fn(usize, &[f64]) -> Vec<f64> + Sync) -> Self {
        let rows = self.values.par_chunks(self.cols).enumerate();
        Self { cols: self.cols, values: rows.flat_map_iter(|(row, values)| of(row, values)).collect() }
    }

    /// The sum of all rows, as one row.
    pub fn summed(&self) -> Self {
        let mut sums = Self::zeros(1, self.cols);
        for row in self.values.chunks(self.cols) {
            sums.values.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
        }
        sums
    }

    pub fn transposed(&self) -> Self {
        let (rows, cols) = (self.count(), self.cols);
        let mut turned = Self::zeros(cols, rows);
        // Some columns at once, so that what is read in a row is used in a row.
        let parts = turned.values.par_chunks_mut(TOGETHER * rows).enumerate();
        parts.for_each(|(part, turned)| {
            let from = part * TOGETHER;
            for (row, values) in self.values.chunks(cols).enumerate() {
                let some = &values[from..cols.min(from + TOGETHER)];
                some.iter().enumerate().for_each(|(col, &value)| turned[col * rows + row] = value);
            }
        });
        turned
    }

    /// The product with the transpose of another: rows of both are summed up.
    pub fn times(&self, other: &Self) -> Self {
        let (m, k, n) = (self.count(), self.cols, other.count());
        let values = product([m, k, n], Lying::by_rows(&self.values, k), Lying::by_rows(&other.values, k).turned());
        Self { cols: n, values }
    }

    /// The product with another.
    pub fn times_as_it_lies(&self, other: &Self) -> Self {
        let (m, k, n) = (self.count(), self.cols, other.cols);
        let values = product([m, k, n], Lying::by_rows(&self.values, k), Lying::by_rows(&other.values, n));
        Self { cols: n, values }
    }

    /// The product of the transpose with another: columns of both are summed up.
    pub fn turned_times(&self, other: &Self) -> Self {
        let (m, k, n) = (self.cols, self.count(), other.cols);
        let values = product([m, k, n], Lying::by_rows(&self.values, m).turned(), Lying::by_rows(&other.values, n));
        Self { cols: n, values }
    }
}

/// Columns that are turned together: what a line of a cache holds, some times.
const TOGETHER: usize = 32;

/// Eight partial sums: the compiler cannot reorder a floating-point sum on its own.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
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
