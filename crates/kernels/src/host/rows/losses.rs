//! Values of rows: what they are short of what they should be, and what they are along one another.

use super::functions::exp;
use super::pass::RowValue;
use super::sums::{largest, sum, sum_of_pairs};
use crate::host::lanes::Lanes;

/// Terms that are added up in f32: all of them have one sign, so that roundings of longer sums would show.
const PIECE: usize = 1024;

/// Of logits, and the number of the right class.
#[derive(Clone, Copy)]
pub struct CrossEntropy;

impl RowValue<2> for CrossEntropy {
    fn columns(self, columns: usize) -> [usize; 2] {
        [columns, 1]
    }

    #[inline(always)]
    fn value<L: Lanes>(self, lanes: L, [logits, class]: [&[f32]; 2]) -> f64 {
        let most = largest(logits);
        let rest =
            logits.chunks(PIECE).map(|logits| f64::from(sum(logits, |x| exp(lanes, x - most)))).sum::<f64>().ln();
        rest - (f64::from(logits[class[0] as usize]) - f64::from(most))
    }
}

/// Of two rows: the sum of their products.
#[derive(Clone, Copy)]
pub struct Dot;

impl RowValue<2> for Dot {
    #[inline(always)]
    fn value<L: Lanes>(self, _: L, [x, y]: [&[f32]; 2]) -> f64 {
        f64::from(sum_of_pairs(x, y, |x, y| x * y))
    }
}

/// Of two rows: the mean square of their differences.
#[derive(Clone, Copy)]
pub struct SquaredError;

impl RowValue<2> for SquaredError {
    #[inline(always)]
    fn value<L: Lanes>(self, _: L, [x, y]: [&[f32]; 2]) -> f64 {
        let pieces = x.chunks(PIECE).zip(y.chunks(PIECE));
        pieces.map(|(x, y)| f64::from(sum_of_pairs(x, y, |x, y| (x - y) * (x - y)))).sum::<f64>() / x.len() as f64
    }
}
