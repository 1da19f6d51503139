//! `Q8_0` and `Q4_0` of ggml: symmetric integers in blocks whose scale is stored in f16. Quantized values are computed
//! with the f32 scale, before it is rounded to f16.

use super::rounding::{clamp_i32, max_f32, min_f32, prevent_fma, select_bits};
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// Upper bound of an inverse scale: the inverse of a subnormal scale is infinite.
const MAX_RECIPROCAL: f32 = f32::MAX;

/// Magnitude of a value.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
fn magnitude(x: f32) -> f32 {
    f32::from_bits(x.to_bits() & 0x7FFF_FFFF)
}

/// Returns the value with the larger magnitude; of two equal magnitudes the first.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn extreme(first: f32, second: f32) -> f32 {
    if magnitude(second) > magnitude(first) { second } else { first }
}

/// f32 scale of a block with the value `extreme` of largest magnitude; `divisor` is -8 for `Q4_0` and 127 for `Q8_0`.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn scale(extreme: f32, divisor: f32) -> f32 {
    let has_sign = divisor < 0.0;
    f32::from_bits(select_bits(has_sign, extreme.to_bits(), magnitude(extreme).to_bits())) / divisor
}

/// Inverse of the f32 scale; zero for a block of zeros.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn reciprocal(scale: f32) -> f32 {
    let inverse = max_f32(min_f32(1.0 / scale, MAX_RECIPROCAL), -MAX_RECIPROCAL);
    f32::from_bits(select_bits(scale == 0.0, 0u32, inverse.to_bits()))
}

/// Quantizes a value to -127..=127, ties away from zero.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn q8_0(x: f32, reciprocal: f32) -> i32 {
    let product = x * reciprocal;
    let size = min_f32(magnitude(product), 127.0);
    let whole = size as i32;
    let up = select_bits(size - whole as f32 >= 0.5, 1u32, 0u32) as i32;
    if product < 0.0 { -(whole + up) } else { whole + up }
}

/// Quantizes a value to -8..=7: adds 8.5, truncates and subtracts 8, so ties are rounded up.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn q4_0(x: f32, reciprocal: f32, opaque_zero: u32) -> i32 {
    let shifted = prevent_fma(x * reciprocal, opaque_zero) + 8.5;
    clamp_i32(max_f32(min_f32(shifted, 16.0), 0.0) as i32, 0, 15) - 8
}
