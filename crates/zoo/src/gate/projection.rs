//! The whole output of a product, judged at the cost of reading it: the values of each row and each column, added up under
//! random signs, must give what follows from the operands alone (Freivalds, 1977).

use super::Part;
use crate::{Matrix, Output};
use rayon::prelude::*;

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

/// Rows that are added up together before the sums of all are: every run gives the same bits.
pub(crate) const TOGETHER: usize = 256;

/// The sign of a row or column, as good as drawn.
pub(crate) fn sign(at: usize) -> f64 {
    let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    if (mixed ^ (mixed >> 32)) & 1 == 0 { 1.0 } else { -1.0 }
}

/// What values add up to under their signs, and what their squares do.
#[derive(Clone, Copy, Default)]
struct Sum {
    signed: f64,
    squares: f64,
}

impl Sum {
    fn add(&mut self, value: f32, sign: f64) {
        self.signed += sign * f64::from(value);
        self.squares += f64::from(value).powi(2);
    }
}

impl Projection {
    /// The same once a matrix of the output's size was added to it.
    pub fn plus(mut self, matrix: &Matrix) -> Self {
        let (rows, cols) = sums(&matrix.values, matrix.cols);
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
    pub(super) fn first_off(&self, output: &Output, relative: f64) -> Option<(Part, f64, f64)> {
        let relative = relative.max(LEAST);
        let (of_rows, of_cols) = sums(&output.values, output.cols);
        let off = |(sum, expected): (&Sum, &f64)| {
            ((sum.signed - expected).abs() > SIGMAS * relative * sum.squares.sqrt()).then_some((sum.signed, *expected))
        };
        let first = |sums: &[Sum], expected: &[f64]| {
            sums.iter().zip(expected).enumerate().find_map(|(at, both)| off(both).map(|values| (at, values)))
        };
        let row = first(&of_rows, &self.rows).map(|(at, values)| (Part::Row(at), values));
        let found = row.or_else(|| first(&of_cols, &self.cols).map(|(at, values)| (Part::Column(at), values)));
        found.map(|(part, (got, expected))| (part, got, expected))
    }
}

/// The sums of rows and of columns.
fn sums(values: &[f32], cols: usize) -> (Vec<Sum>, Vec<Sum>) {
    let signs: Vec<f64> = (0..cols).map(sign).collect();
    let of_rows = values.par_chunks(cols).map(|row| summed(row, signs.iter().copied())).collect();
    let some_rows = values.par_chunks(cols * TOGETHER).enumerate();
    let of_some_rows: Vec<Vec<Sum>> = some_rows
        .map(|(at, values)| {
            let mut sums = vec![Sum::default(); cols];
            for (row, values) in values.chunks(cols).enumerate() {
                let sign = sign(at * TOGETHER + row);
                sums.iter_mut().zip(values).for_each(|(sum, &value)| sum.add(value, sign));
            }
            sums
        })
        .collect();
    let mut of_cols = vec![Sum::default(); cols];
    for some in &of_some_rows {
        for (sum, some) in of_cols.iter_mut().zip(some) {
            sum.signed += some.signed;
            sum.squares += some.squares;
        }
    }
    (of_rows, of_cols)
}

fn summed(values: &[f32], signs: impl Iterator<Item = f64>) -> Sum {
    let mut sum = Sum::default();
    values.iter().zip(signs).for_each(|(&value, sign)| sum.add(value, sign));
    sum
}
