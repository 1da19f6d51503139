//! What the rows and columns of a matrix add up to, each number under a sign that is as good as drawn.

use rayon::prelude::*;

/// Rows that are added up together before the sums of all are: every run gives the same bits.
pub(crate) const TOGETHER: usize = 256;

/// The sign of a row or column, as good as drawn.
pub(crate) fn sign(at: usize) -> f64 {
    let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    if (mixed ^ (mixed >> 32)) & 1 == 0 { 1.0 } else { -1.0 }
}

/// What the rows and columns of an output add up to.
#[derive(Debug, Clone, PartialEq)]
pub struct Sums {
    pub(crate) rows: Vec<Sum>,
    pub(crate) cols: Vec<Sum>,
}

/// What values add up to under their signs, and what their squares do.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Sum {
    pub signed: f64,
    pub squares: f64,
}

impl Sum {
    fn add(&mut self, value: f32, sign: f64) {
        self.signed += sign * f64::from(value);
        self.squares += f64::from(value).powi(2);
    }
}

impl Sums {
    /// Of values in rows of so many columns.
    pub fn of(values: &[f32], cols: usize) -> Self {
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
        Self { rows: of_rows, cols: of_cols }
    }

    /// As a device found them: under signs, and squared.
    #[cfg(feature = "cuda")]
    pub(crate) fn found([rows, cols]: [Vec<[f64; 2]>; 2]) -> Self {
        let sums = |of: Vec<[f64; 2]>| of.into_iter().map(|[signed, squares]| Sum { signed, squares }).collect();
        Self { rows: sums(rows), cols: sums(cols) }
    }

    /// Whether they are others, but for the order in which they were added up.
    #[cfg(all(test, feature = "cuda"))]
    pub(crate) fn is_near(&self, others: &Self) -> bool {
        let near = |one: &Sum, other: &Sum| {
            (one.signed - other.signed).abs() <= 1e-12 * other.squares
                && (one.squares - other.squares).abs() <= 1e-12 * other.squares
        };
        let all = |these: &[Sum], others: &[Sum]| {
            these.len() == others.len() && these.iter().zip(others).all(|(a, b)| near(a, b))
        };
        all(&self.rows, &others.rows) && all(&self.cols, &others.cols)
    }
}

/// What values add up to under these signs.
pub(crate) fn summed(values: &[f32], signs: impl Iterator<Item = f64>) -> Sum {
    let mut sum = Sum::default();
    values.iter().zip(signs).for_each(|(&value, sign)| sum.add(value, sign));
    sum
}
