//! Exponentials of a row as shares of their sum.

use super::functions::{coarse_exp, exp};
use super::pass::{Number, RowFunction};
use super::sums::{largest, sum};
use crate::host::lanes::Lanes;

#[derive(Clone, Copy)]
pub struct Softmax {
    /// Whether the shares are rounded to 16 bits.
    pub coarse: bool,
}

impl RowFunction<1, 0, 1> for Softmax {
    #[inline(always)]
    fn row<L: Lanes, N: Number>(self, lanes: L, [x]: [&[N]; 1], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
        if self.coarse {
            shares(x, y, |x| coarse_exp(lanes, x));
        } else {
            shares(x, y, |x| exp(lanes, x));
        }
    }
}

#[inline(always)]
fn shares<N: Number>(x: &[N], y: &mut [f32], exp: impl Fn(f32) -> f32) {
    let most = largest(x);
    y.iter_mut().zip(x).for_each(|(y, x)| *y = exp(x.wide() - most));
    let inverse = 1.0 / sum(y, |y| y);
    y.iter_mut().for_each(|y| *y *= inverse);
}
