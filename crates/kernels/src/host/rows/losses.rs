//! Reductions of rows: cross-entropy, dot product, squared error.

use super::functions::exp;
use super::pass::RowReduction;
use super::sums::{max, sum, sum_of_pairs};
use crate::host::float_simd::FloatSimd;

/// Terms that are summed in f32. All terms have one sign, so that the rounding error of longer f32 sums would be
/// noticeable.
const CHUNK: usize = 1024;

/// Cross-entropy of logits and a class index.
#[derive(Clone, Copy)]
pub(super) struct CrossEntropyRow;

impl RowReduction<2> for CrossEntropyRow {
    fn columns(self, columns: usize) -> [usize; 2] {
        [columns, 1]
    }

    #[inline(always)]
    fn value<L: FloatSimd>(self, lanes: L, [logits, class]: [&[f32]; 2]) -> f64 {
        let most = max(logits);
        let rest =
            logits.chunks(CHUNK).map(|logits| f64::from(sum(logits, |x| exp(lanes, x - most)))).sum::<f64>().ln();
        rest - (f64::from(logits[class[0] as usize]) - f64::from(most))
    }
}

/// Dot product of two rows.
#[derive(Clone, Copy)]
pub(super) struct DotRow;

impl RowReduction<2> for DotRow {
    #[inline(always)]
    fn value<L: FloatSimd>(self, _: L, [x, y]: [&[f32]; 2]) -> f64 {
        f64::from(sum_of_pairs(x, y, |x, y| x * y))
    }
}

/// Mean squared difference of two rows.
#[derive(Clone, Copy)]
pub(super) struct SquaredErrorRow;

impl RowReduction<2> for SquaredErrorRow {
    #[inline(always)]
    fn value<L: FloatSimd>(self, _: L, [x, y]: [&[f32]; 2]) -> f64 {
        let pieces = x.chunks(CHUNK).zip(y.chunks(CHUNK));
        pieces.map(|(x, y)| f64::from(sum_of_pairs(x, y, |x, y| (x - y) * (x - y)))).sum::<f64>() / x.len() as f64
    }
}
