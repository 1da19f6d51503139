//! Quantization to small floats under amax scales: on tensors by burn's operations, on scalars for the reference.
//!
//! `precision` is the dtype that the scale and the quotient x / scale are rounded to: bf16 for bf16 tensors, as in
//! qwix. With f32 neither is rounded.

use super::e4m3::power_of_two;
use burn::tensor::{DType, Tensor, backend::Backend};
use calorimeter_recipes::{Dtype, Element, ElementCodec, FloatType};
use std::f32::consts::LOG2_E;

/// Amax that the static scale is made for.
pub(super) const STATIC_AMAX: f32 = 224.0;

/// Minimum scale: the square root of the smallest normal bf16 value. Smaller scales become 1.
const MIN_SCALE: f32 = 1.084_202_2e-19;

/// Scale that maps `magnitude` to the largest finite value of the format.
pub(super) fn scale(magnitude: f32, element: Element, precision: Dtype) -> f32 {
    let scale = precision.round(magnitude / element.max_value());
    if scale < MIN_SCALE { 1.0 } else { scale }
}

/// Returns x / scale rounded to the format, saturating.
pub(super) fn quantized_value(x: f32, scale: f32, element: Element, precision: Dtype) -> f32 {
    element.decode(element.encode(precision.round(x / scale)))
}

/// Largest absolute value; 0 if there are none.
pub(super) fn amax<'a>(values: impl IntoIterator<Item = &'a f32>) -> f32 {
    values.into_iter().fold(0.0, |largest, value| largest.max(value.abs()))
}

/// Largest absolute values over the dimensions `dims`, in f32.
pub(super) fn amax_over<B: Backend, const D: usize>(x: &Tensor<B, D>, dims: &[usize]) -> Tensor<B, D> {
    dims.iter().fold(x.clone().abs(), |x, &dim| x.max_dim(dim)).cast(DType::F32)
}

/// Scales that map each amax to 448, the largest e4m3 value.
pub(super) fn scales<B: Backend, const D: usize>(magnitudes: Tensor<B, D>, precision: Dtype) -> Tensor<B, D> {
    let scales = magnitudes.div_scalar(Element::E4m3.max_value()).cast(precision.burn()).cast(DType::F32);
    let small = scales.clone().lower_elem(MIN_SCALE);
    scales.mask_fill(small, 1.0)
}

/// x / scale, rounded to `precision`: the input of the rounding to e4m3.
pub(super) fn quotients<B: Backend, const D: usize>(
    x: Tensor<B, D>,
    scales: Tensor<B, D>,
    precision: Dtype,
) -> Tensor<B, D> {
    (x.cast(DType::F32) / scales).cast(precision.burn()).cast(DType::F32)
}

/// MX block scales: the smallest powers of two under which the amax of a bf16 block is at most 448.
pub(super) fn mx_scales<B: Backend, const D: usize>(magnitudes: Tensor<B, D>) -> Tensor<B, D> {
    // The 0.001 absorbs the error of the logarithm. A bf16 amax has 8 significant bits, so a quotient that is not a
    // power of two differs from one by more than that.
    let ratio = magnitudes.div_scalar(Element::E4m3.max_value()).clamp_min(f32::MIN_POSITIVE);
    power_of_two(ratio.log().mul_scalar(LOG2_E).sub_scalar(0.001).ceil())
}
