//! Steps of half-quadratic quantization for a single value.

use super::power::inverse_power;
use super::rounding::{clamp_i32, min_f32, prevent_fma, round_to_i32, select_bits};
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// Maximum number of iterations.
pub const ITERATIONS: usize = 20;

/// Upper bound of the inverse scale.
const MAX_INVERSE_SCALE: f32 = 20_000.0;

/// Inverse scale of a group: quantized steps per unit.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn inverse_scale(low: f32, high: f32, max_value: i32) -> f32 {
    min_f32((1.0 / (high - low)) * max_value as f32, MAX_INVERSE_SCALE)
}

/// Zero point before the first iteration, in quantized steps; an integer for 4-bit values.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn initial_zero_point(low: f32, inverse_scale: f32, max_value: i32, opaque_zero: u32) -> f32 {
    let zero = prevent_fma(-low * inverse_scale, opaque_zero);
    if max_value == 15 { round_to_i32(zero) as f32 } else { zero }
}

/// Quantizes a value.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn code(x: f32, inverse_scale: f32, zero: f32, max_value: i32, opaque_zero: u32) -> i32 {
    clamp_i32(round_to_i32(prevent_fma(x * inverse_scale, opaque_zero) + zero), 0, max_value)
}

/// Quantization error of a value.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn error(x: f32, code: i32, inverse_scale: f32, zero: f32) -> f32 {
    x - (code as f32 - zero) / inverse_scale
}

/// Outlier part of an error: the excess over |error|^-0.3 / beta (generalized soft thresholding).
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn outlier(error: f32, inverse_beta: f32, opaque_zero: u32) -> f32 {
    let magnitude = f32::from_bits(error.to_bits() & 0x7FFF_FFFF);
    let excess = magnitude - prevent_fma(inverse_beta * inverse_power(magnitude, opaque_zero), opaque_zero);
    let sign = error.to_bits() & 0x8000_0000u32;
    f32::from_bits(select_bits(excess > 0.0, excess.to_bits() | sign, 0u32))
}

/// Zero point that would represent a value exactly, except for its outlier part.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn target_zero_point(x: f32, code: i32, outlier: f32, inverse_scale: f32, opaque_zero: u32) -> f32 {
    code as f32 - prevent_fma((x - outlier) * inverse_scale, opaque_zero)
}
