//! Layer and RMS normalization.

use super::functions::gelu;
use super::pass::{FloatElement, RowFunction, block_rows};
use super::sums::sum;
use crate::host::float_simd::FloatSimd;
use crate::host::partition::run_parallel;

/// Constant added to the variance, so that constant rows do not divide by zero.
const EPSILON: f32 = 1e-5;

/// Computes `y = (x - mean) / sqrt(variance + 1e-5)` for each row of `k` elements, synchronously.
pub fn layer_norm(x: &[f32], k: usize, y: &mut [f32]) {
    let block = block_rows(y.len() / k, k) * k;
    run_parallel(y.chunks_mut(block).zip(x.chunks(block)).collect(), |(y, x)| {
        for (y, x) in y.chunks_mut(k).zip(x.chunks(k)) {
            let (mean, inverse) = moments(x);
            y.iter_mut().zip(x).for_each(|(y, x)| *y = (x - mean) * inverse);
        }
    });
}

/// Returns the mean and the inverse standard deviation.
#[inline(always)]
fn moments<N: FloatElement>(x: &[N]) -> (f32, f32) {
    let mean = sum(x, |x| x) / x.len() as f32;
    let variance = sum(x, |x| (x - mean) * (x - mean)) / x.len() as f32;
    (mean, 1.0 / (variance + EPSILON).sqrt())
}

/// Writes a function of the normalized row times the gain plus the bias.
#[inline(always)]
fn normalize<N: FloatElement>(x: &[N], [gain, bias]: [&[f32]; 2], y: &mut [f32], function: impl Fn(f32) -> f32) {
    let (mean, inverse) = moments(x);
    let affine = gain.iter().zip(bias);
    y.iter_mut().zip(x.iter().zip(affine)).for_each(|(y, (x, (gain, bias)))| {
        *y = function((x.to_f32() - mean) * inverse * gain + bias);
    });
}

#[derive(Clone, Copy)]
pub(super) struct LayerNormRow;

impl RowFunction<1, 2, 1> for LayerNormRow {
    #[inline(always)]
    fn row<L: FloatSimd, N: FloatElement>(self, _: L, [x]: [&[N]; 1], affine: [&[f32]; 2], [y]: [&mut [f32]; 1]) {
        normalize(x, affine, y, |y| y);
    }
}

#[derive(Clone, Copy)]
pub(super) struct LayerNormGeluRow;

impl RowFunction<1, 2, 1> for LayerNormGeluRow {
    #[inline(always)]
    fn row<L: FloatSimd, N: FloatElement>(self, lanes: L, [x]: [&[N]; 1], affine: [&[f32]; 2], [y]: [&mut [f32]; 1]) {
        normalize(x, affine, y, |y| gelu(lanes, y));
    }
}

#[derive(Clone, Copy)]
pub(super) struct AddLayerNormRow;

impl RowFunction<2, 2, 2> for AddLayerNormRow {
    #[inline(always)]
    fn row<L: FloatSimd, N: FloatElement>(
        self,
        _: L,
        [a, b]: [&[N]; 2],
        affine: [&[f32]; 2],
        [total, y]: [&mut [f32]; 2],
    ) {
        total.iter_mut().zip(a.iter().zip(b)).for_each(|(total, (a, b))| *total = a.to_f32() + b.to_f32());
        normalize(&*total, affine, y, |y| y);
    }
}

#[derive(Clone, Copy)]
pub(super) struct RmsNormRow {
    pub epsilon: f32,
}

impl RowFunction<1, 1, 1> for RmsNormRow {
    #[inline(always)]
    fn row<L: FloatSimd, N: FloatElement>(self, _: L, [x]: [&[N]; 1], [gain]: [&[f32]; 1], [y]: [&mut [f32]; 1]) {
        let square = sum(x, |x| x * x) / x.len() as f32;
        let inverse = 1.0 / (square + self.epsilon).sqrt();
        y.iter_mut().zip(x.iter().zip(gain)).for_each(|(y, (x, gain))| *y = x.to_f32() * inverse * gain);
    }
}
