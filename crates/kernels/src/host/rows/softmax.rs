//! Exponentials of a row as shares of their sum.

use super::functions::exp;
use super::pass::RowFunction;
use super::sums::{largest, sum};
use crate::host::lanes::Lanes;

#[derive(Clone, Copy)]
pub struct Softmax;

impl RowFunction<1, 0, 1> for Softmax {
    #[inline(always)]
    fn row<L: Lanes>(self, lanes: L, [x]: [&[f32]; 1], []: [&[f32]; 0], [y]: [&mut [f32]; 1]) {
        let most = largest(x);
        y.iter_mut().zip(x).for_each(|(y, &x)| *y = exp(lanes, x - most));
        let inverse = 1.0 / sum(y, |y| y);
        y.iter_mut().for_each(|y| *y *= inverse);
    }
}
