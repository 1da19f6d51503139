//! Freivalds' check (1977): signed sums of the rows and columns of a matmul's output, computed from its operands.
//!
//! The whole output is checked at the cost of reading it.

use super::CheckedPart;
use crate::Matrix;
use crate::signed_sums::{SignedSums, SumWithSquares, sign, sum_with_signs};

/// Expected signed sums of the rows and columns of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// Value per row, over its columns.
    pub rows: Vec<f64>,
    /// Value per column, over its rows.
    pub cols: Vec<f64>,
}

/// Allowed standard errors of a signed sum, for hundreds of thousands of sums.
const SIGMAS: f64 = 8.0;

/// Minimum assumed relative error: sums are rounded even if each value is exact.
const MIN_RELATIVE_ERROR: f64 = 1e-9;

impl Projection {
    /// Adds the sums of a matrix that is added to the output.
    pub fn plus_matrix(mut self, matrix: &Matrix) -> Self {
        let SignedSums { rows, cols } = SignedSums::new(&matrix.values, matrix.cols);
        self.rows.iter_mut().zip(rows).for_each(|(sum, more)| *sum += more.signed);
        self.cols.iter_mut().zip(cols).for_each(|(sum, more)| *sum += more.signed);
        self
    }

    /// Adds the sums of a vector that is added to each row of the output.
    pub fn plus_row(mut self, row: &[f32]) -> Self {
        let once = sum_with_signs(row, (0..row.len()).map(sign)).signed;
        let signs: f64 = (0..self.rows.len()).map(sign).sum();
        self.rows.iter_mut().for_each(|sum| *sum += once);
        self.cols.iter_mut().zip(row).for_each(|(sum, &value)| *sum += signs * f64::from(value));
        self
    }

    /// Returns the first row or column whose sum is off by more than errors of this relative size explain.
    ///
    /// The tuple holds the part, its sum and the expected sum.
    pub(super) fn first_mismatch(&self, sums: &SignedSums, relative: f64) -> Option<(CheckedPart, f64, f64)> {
        let relative = relative.max(MIN_RELATIVE_ERROR);
        let off = |(sum, expected): (&SumWithSquares, &f64)| {
            ((sum.signed - expected).abs() > SIGMAS * relative * sum.squares.sqrt()).then_some((sum.signed, *expected))
        };
        let first = |sums: &[SumWithSquares], expected: &[f64]| {
            sums.iter().zip(expected).enumerate().find_map(|(at, both)| off(both).map(|values| (at, values)))
        };
        let row = first(&sums.rows, &self.rows).map(|(at, values)| (CheckedPart::Row(at), values));
        let found = row.or_else(|| first(&sums.cols, &self.cols).map(|(at, values)| (CheckedPart::Column(at), values)));
        found.map(|(part, (got, expected))| (part, got, expected))
    }
}
