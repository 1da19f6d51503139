//! The whole output of a product, judged at the cost of reading it: the values of each row and each column, added up under
//! random signs, must give what follows from the operands alone (Freivalds, 1977).

use super::Part;
use crate::Matrix;
use crate::signed_sums::{Sum, Sums, sign, summed};

/// What the rows and columns of a correct output add up to under random signs.
#[derive(Debug, Clone, PartialEq)]
pub struct Projection {
    /// For each row, over its columns.
    pub rows: Vec<f64>,
    /// For each column, over its rows.
    pub cols: Vec<f64>,
}

/// Standard errors by which a sum may be off, one among hundreds of thousands.
const SIGMAS: f64 = 8.0;

/// An error that is never counted as less: sums are rounded even where each of their values is exact.
const LEAST: f64 = 1e-9;

impl Projection {
    /// The same once a matrix of the output's size was added to it.
    pub fn plus(mut self, matrix: &Matrix) -> Self {
        let Sums { rows, cols } = Sums::of(&matrix.values, matrix.cols);
        self.rows.iter_mut().zip(rows).for_each(|(sum, more)| *sum += more.signed);
        self.cols.iter_mut().zip(cols).for_each(|(sum, more)| *sum += more.signed);
        self
    }

    /// The same once a row was added to each of its rows.
    pub fn plus_row(mut self, row: &[f32]) -> Self {
        let once = summed(row, (0..row.len()).map(sign)).signed;
        let signs: f64 = (0..self.rows.len()).map(sign).sum();
        self.rows.iter_mut().for_each(|sum| *sum += once);
        self.cols.iter_mut().zip(row).for_each(|(sum, &value)| *sum += signs * f64::from(value));
        self
    }

    /// The first row or column that is further off than errors of this size, relative to its values, would take it, with
    /// its sum and what that should be.
    pub(super) fn first_off(&self, sums: &Sums, relative: f64) -> Option<(Part, f64, f64)> {
        let relative = relative.max(LEAST);
        let off = |(sum, expected): (&Sum, &f64)| {
            ((sum.signed - expected).abs() > SIGMAS * relative * sum.squares.sqrt()).then_some((sum.signed, *expected))
        };
        let first = |sums: &[Sum], expected: &[f64]| {
            sums.iter().zip(expected).enumerate().find_map(|(at, both)| off(both).map(|values| (at, values)))
        };
        let row = first(&sums.rows, &self.rows).map(|(at, values)| (Part::Row(at), values));
        let found = row.or_else(|| first(&sums.cols, &self.cols).map(|(at, values)| (Part::Column(at), values)));
        found.map(|(part, (got, expected))| (part, got, expected))
    }
}
