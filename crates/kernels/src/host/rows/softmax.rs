//! Softmax of rows.

use super::functions::{coarse_exp, exp};
use super::pass::{FloatElement, RowFunction};
use super::sums::{max, sum};
use crate::host::float_simd::FloatSimd;

#[derive(Clone, Copy)]
pub(super) struct SoftmaxRow {
    /// True if the result is rounded to 16 bits.
    pub coarse: bool,
}

impl RowFunction<1, 0, 1> for SoftmaxRow {
    #[inline(always)]
    fn row<L: FloatSimd, N: FloatElement>(self, lanes: L, [x]: [&[N]; 1], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
        if self.coarse {
            normalize_exponentials(x, y, |x| coarse_exp(lanes, x));
        } else {
            normalize_exponentials(x, y, |x| exp(lanes, x));
        }
    }
}

#[inline(always)]
fn normalize_exponentials<N: FloatElement>(x: &[N], y: &mut [f32], exp: impl Fn(f32) -> f32) {
    let most = max(x);
    y.iter_mut().zip(x).for_each(|(y, x)| *y = exp(x.to_f32() - most));
    let inverse = 1.0 / sum(y, |y| y);
    y.iter_mut().for_each(|y| *y *= inverse);
}
