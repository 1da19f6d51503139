//! Quantizing to small floats under scales from the largest magnitude, on a device and, one number at a time, on the host.
//!
//! In bf16 both the scale and the quotient are rounded to bf16, as qwix does for bf16 tensors; in f32 neither is.

use super::minifloat::power_of_two;
use burn::tensor::{DType, Tensor, backend::Backend};
use calorimeter_recipes::{Codes, Dtype, Element, FloatType};
use std::f32::consts::LOG2_E;

/// Where the scale is fixed: the largest magnitude that it is made for.
pub(super) const FIXED: f32 = 224.0;

/// Smaller scales become 1: the square root of the least normal bf16 number.
const LEAST: f32 = 1.084_202_2e-19;

/// The scale that takes a magnitude to the format's largest number.
pub(super) fn scale(magnitude: f32, element: Element, steps: Dtype) -> f32 {
    let scale = steps.round(magnitude / element.largest());
    if scale < LEAST { 1.0 } else { scale }
}

/// The number that a number's code stands for; it saturates.
pub(super) fn code(x: f32, scale: f32, element: Element, steps: Dtype) -> f32 {
    element.decode(element.encode(steps.round(x / scale)))
}

/// The largest magnitude.
pub(super) fn magnitude<'a>(values: impl IntoIterator<Item = &'a f32>) -> f32 {
    values.into_iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

/// The largest magnitudes over some dimensions, in f32.
pub(super) fn magnitudes<B: Backend, const D: usize>(x: &Tensor<B, D>, over: &[usize]) -> Tensor<B, D> {
    over.iter().fold(x.clone().abs(), |x, &dim| x.max_dim(dim)).cast(DType::F32)
}

/// The scales of e4m3 that take magnitudes to its largest number.
pub(super) fn scales<B: Backend, const D: usize>(magnitudes: Tensor<B, D>, steps: Dtype) -> Tensor<B, D> {
    let scales = magnitudes.div_scalar(Element::E4m3.largest()).cast(steps.burn()).cast(DType::F32);
    let small = scales.clone().lower_elem(LEAST);
    scales.mask_fill(small, 1.0)
}

/// What is rounded to codes.
pub(super) fn quotients<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    scales: Tensor<B, D>,
    steps: Dtype,
) -> Tensor<B, D> {
    (x.cast(DType::F32) / scales).cast(steps.burn()).cast(DType::F32)
}

/// The powers of two that take bf16 magnitudes to at most the largest number of e4m3: the scales of microscaling blocks.
pub(super) fn powers<B: Backend, const D: usize>(magnitudes: Tensor<B, D>) -> Tensor<B, D> {
    // A quotient is a power of two or farther from one than a logarithm errs: a bf16 number has eight bits.
    let size = magnitudes.div_scalar(Element::E4m3.largest()).clamp_min(f32::MIN_POSITIVE);
    power_of_two(size.log().mul_scalar(LOG2_E).sub_scalar(0.001).ceil())
}
