//! Rows with a mean square of 1, and with a mean of 0 too.

use super::functions::gelu;
use super::pass::{Number, RowFunction, rows_of_block};
use super::sums::sum;
use crate::host::cut::share_out;
use crate::host::lanes::Lanes;

/// What is added to a variance, so that rows of equal numbers have one.
const EPSILON: f32 = 1e-5;

/// Computes `y = (x - mean) / sqrt(variance + 1e-5)` for each row of `k` numbers, all of it before it returns.
pub fn layer_norm(x: &[f32], k: usize, y: &mut [f32]) {
    let block = rows_of_block(y.len() / k, k) * k;
    share_out(y.chunks_mut(block).zip(x.chunks(block)).collect(), |(y, x)| {
        for (y, x) in y.chunks_mut(k).zip(x.chunks(k)) {
            let (mean, inverse) = moments(x);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - mean) * inverse);
        }
    });
}

/// The mean, and one over the standard deviation.
#[inline(always)]
fn moments<N: Number>(x: &[N]) -> (f32, f32) {
    let mean = sum(x, |x| x) / x.len() as f32;
    let variance = sum(x, |x| (x - mean) * (x - mean)) / x.len() as f32;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

/// Writes a function of the numbers of a row, normalized, times the gain and plus the bias.
#[inline(always)]
fn normalize<N: Number>(x: &[N], [gain, bias]: [&[f32]; 2], y: &mut [f32], function: impl Fn(f32) -> f32) {
    let (mean, inverse) = moments(x);
    let affine = gain.iter().zip(bias);
    y.iter_mut().zip(x.iter().zip(affine)).for_each(|(y, (x, (gain, bias)))| {
        *y = function((x.wide() - mean) * inverse * gain + bias);
    });
}

#[derive(Clone, Copy)]
pub struct LayerNorm;

impl RowFunction<1, 2, 1> for LayerNorm {
    #[inline(always)]
    fn row<L: Lanes, N: Number>(self, _: L, [x]: [&[N]; 1], affine: [&[f32]; 2], [y]: [&mut [f32]; 1]) {
        normalize(x, affine, y, |y| y);
    }
}

#[derive(Clone, Copy)]
pub struct LayerNormGelu;

impl RowFunction<1, 2, 1> for LayerNormGelu {
    #[inline(always)]
    fn row<L: Lanes, N: Number>(self, lanes: L, [x]: [&[N]; 1], affine: [&[f32]; 2], [y]: [&mut [f32]; 1]) {
        normalize(x, affine, y, |y| gelu(lanes, y));
    }
}

#[derive(Clone, Copy)]
pub struct AddLayerNorm;

impl RowFunction<2, 2, 2> for AddLayerNorm {
    #[inline(always)]
    fn row<L: Lanes, N: Number>(self, _: L, [a, b]: [&[N]; 2], affine: [&[f32]; 2], [total, y]: [&mut [f32]; 2]) {
        total.iter_mut().zip(a.iter().zip(b)).for_each(|(total, (a, b))| *total = a.wide() + b.wide());
        normalize(&*total, affine, y, |y| y);
    }
}

#[derive(Clone, Copy)]
pub struct RmsNorm {
    pub epsilon: f32,
}

impl RowFunction<1, 1, 1> for RmsNorm {
    #[inline(always)]
    fn row<L: Lanes, N: Number>(self, _: L, [x]: [&[N]; 1], [gain]: [&[f32]; 1], [y]: [&mut [f32]; 1]) {
        let square = sum(x, |x| x * x) / x.len() as f32;
        let inverse = 1.0 / (square + self.epsilon).sqrt();
        y.iter_mut().zip(x.iter().zip(gain)).for_each(|(y, (x, gain))| *y = x.wide() * inverse * gain);
    }
}
