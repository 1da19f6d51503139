//! What a row is short of what it should be.

use super::functions::exp;
use super::pass::RowValue;
use super::sums::{largest, sum, sum_of_pairs};

/// Of logits, and the number of the right class.
#[derive(Clone, Copy)]
pub struct CrossEntropy;

impl RowValue<2> for CrossEntropy {
    fn columns(self, columns: usize) -> [usize; 2] {
        [columns, 1]
    }

    #[inline(always)]
    fn value(self, [logits, class]: [&[f32]; 2]) -> f64 {
        let most = largest(logits);
        let rest = f64::from(sum(logits, |x| exp(x - most))).ln();
        rest - (f64::from(logits[class[0] as usize]) - f64::from(most))
    }
}

/// Of two rows: the mean square of their differences.
#[derive(Clone, Copy)]
pub struct SquaredError;

impl RowValue<2> for SquaredError {
    #[inline(always)]
    fn value(self, [x, y]: [&[f32]; 2]) -> f64 {
        f64::from(sum_of_pairs(x, y, |x, y| (x - y) * (x - y))) / x.len() as f64
    }
}
