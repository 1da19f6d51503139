//! The steps of half-quadratic quantization on one number.

use super::power::inverse_power;
use super::rounding::{apart, bounded, either, lesser, to_integer};
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// Iterations at most.
pub const ITERATIONS: usize = 20;

/// No group is stretched more than this.
const STEEPEST: f32 = 20_000.0;

/// Codes per unit: the inverse of the scale.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn stretch(low: f32, high: f32, most: i32) -> f32 {
    lesser((1.0 / (high - low)) * most as f32, STEEPEST)
}

/// The zero to begin with, in codes; 4-bit codes begin with an integer.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn first_zero(low: f32, stretch: f32, most: i32, blank: u32) -> f32 {
    let zero = apart(-low * stretch, blank);
    if most == 15 { to_integer(zero) as f32 } else { zero }
}

/// A number's code.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn code(x: f32, stretch: f32, zero: f32, most: i32, blank: u32) -> i32 {
    bounded(to_integer(apart(x * stretch, blank) + zero), 0, most)
}

/// What a code leaves of a number.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn error(x: f32, code: i32, stretch: f32, zero: f32) -> f32 {
    x - (code as f32 - zero) / stretch
}

/// The part of an error that is kept as an outlier: what exceeds |error|^-0.3 times the inverse of the weight `beta`.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn outlier(error: f32, inverse_beta: f32, blank: u32) -> f32 {
    let magnitude = f32::from_bits(error.to_bits() & 0x7FFF_FFFF);
    let kept = magnitude - apart(inverse_beta * inverse_power(magnitude, blank), blank);
    let sign = error.to_bits() & 0x8000_0000u32;
    f32::from_bits(either(kept > 0.0, kept.to_bits() | sign, 0u32))
}

/// What a number wishes its group's zero to be, without its outlier.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn wished_zero(x: f32, code: i32, outlier: f32, stretch: f32, blank: u32) -> f32 {
    code as f32 - apart((x - outlier) * stretch, blank)
}
