//! Row and column sums of a matrix under pseudo-random signs.

use rayon::prelude::*;

/// Rows per partial sum; fixed, so that every run computes identical bits.
pub(crate) const ROWS_PER_PARTIAL_SUM: usize = 256;

/// Pseudo-random sign of a row or column.
pub(crate) fn sign(at: usize) -> f64 {
    let mixed = (at as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    if (mixed ^ (mixed >> 32)) & 1 == 0 { 1.0 } else { -1.0 }
}

/// Signed sums of all rows and columns of an output.
#[derive(Debug, Clone, PartialEq)]
pub struct SignedSums {
    pub(crate) rows: Vec<SumWithSquares>,
    pub(crate) cols: Vec<SumWithSquares>,
}

/// Signed sum and sum of squares.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SumWithSquares {
    pub signed: f64,
    pub squares: f64,
}

impl SumWithSquares {
    fn add(&mut self, value: f32, sign: f64) {
        self.signed += sign * f64::from(value);
        self.squares += f64::from(value).powi(2);
    }
}

impl SignedSums {
    /// Computes the sums of a row-major matrix with `cols` columns.
    pub fn new(values: &[f32], cols: usize) -> Self {
        let signs: Vec<f64> = (0..cols).map(sign).collect();
        let of_rows = values.par_chunks(cols).map(|row| sum_with_signs(row, signs.iter().copied())).collect();
        let some_rows = values.par_chunks(cols * ROWS_PER_PARTIAL_SUM).enumerate();
        let of_some_rows: Vec<Vec<SumWithSquares>> = some_rows
            .map(|(at, values)| {
                let mut sums = vec![SumWithSquares::default(); cols];
                for (row, values) in values.chunks(cols).enumerate() {
                    let sign = sign(at * ROWS_PER_PARTIAL_SUM + row);
                    sums.iter_mut().zip(values).for_each(|(sum, &value)| sum.add(value, sign));
                }
                sums
            })
            .collect();
        let mut of_cols = vec![SumWithSquares::default(); cols];
        for some in &of_some_rows {
            for (sum, some) in of_cols.iter_mut().zip(some) {
                sum.signed += some.signed;
                sum.squares += some.squares;
            }
        }
        Self { rows: of_rows, cols: of_cols }
    }

    /// Converts sums computed on a device: pairs of signed sum and sum of squares.
    #[cfg(feature = "native")]
    pub(crate) fn from_device([rows, cols]: [Vec<[f64; 2]>; 2]) -> Self {
        let sums =
            |of: Vec<[f64; 2]>| of.into_iter().map(|[signed, squares]| SumWithSquares { signed, squares }).collect();
        Self { rows: sums(rows), cols: sums(cols) }
    }

    /// True if the sums agree up to the order of additions.
    #[cfg(all(test, feature = "native"))]
    pub(crate) fn is_near(&self, others: &Self) -> bool {
        let near = |one: &SumWithSquares, other: &SumWithSquares| {
            (one.signed - other.signed).abs() <= 1e-12 * other.squares
                && (one.squares - other.squares).abs() <= 1e-12 * other.squares
        };
        let all = |these: &[SumWithSquares], others: &[SumWithSquares]| {
            these.len() == others.len() && these.iter().zip(others).all(|(a, b)| near(a, b))
        };
        all(&self.rows, &others.rows) && all(&self.cols, &others.cols)
    }
}

/// Sums values under the given signs.
pub(crate) fn sum_with_signs(values: &[f32], signs: impl Iterator<Item = f64>) -> SumWithSquares {
    let mut sum = SumWithSquares::default();
    values.iter().zip(signs).for_each(|(&value, sign)| sum.add(value, sign));
    sum
}
