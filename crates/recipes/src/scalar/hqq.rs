//! Steps of half-quadratic quantization for a single value.

use super::power::inverse_power;
use super::rounding::{apart, bounded, either, lesser, to_integer};
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// Maximum number of iterations.
pub const ITERATIONS: usize = 20;

/// Upper bound of the inverse scale.
const STEEPEST: f32 = 20_000.0;

/// Inverse scale of a group: quantized steps per unit.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn stretch(low: f32, high: f32, max_value: i32) -> f32 {
    lesser((1.0 / (high - low)) * max_value as f32, STEEPEST)
}

/// Zero point before the first iteration, in quantized steps; an integer for 4-bit values.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn first_zero(low: f32, inverse_scale: f32, max_value: i32, opaque_zero: u32) -> f32 {
    let zero = apart(-low * inverse_scale, opaque_zero);
    if max_value == 15 { to_integer(zero) as f32 } else { zero }
}

/// Quantizes a value.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn code(x: f32, inverse_scale: f32, zero: f32, max_value: i32, opaque_zero: u32) -> i32 {
    bounded(to_integer(apart(x * inverse_scale, opaque_zero) + zero), 0, max_value)
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
    let excess = magnitude - apart(inverse_beta * inverse_power(magnitude, opaque_zero), opaque_zero);
    let sign = error.to_bits() & 0x8000_0000u32;
    f32::from_bits(either(excess > 0.0, excess.to_bits() | sign, 0u32))
}

/// Zero point that would represent a value exactly, except for its outlier part.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn wished_zero(x: f32, code: i32, outlier: f32, inverse_scale: f32, opaque_zero: u32) -> f32 {
    code as f32 - apart((x - outlier) * inverse_scale, opaque_zero)
}
