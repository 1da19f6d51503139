//! QQQ: 4-bit values with group scales relative to an int8 scale per row.

use super::rounding::{StepRounding, clamp_i32, round_to_i32, select_bits};
use super::rules::div_or_zero;
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// Absolute scale of a group.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn group_scale<S: StepRounding>(amax: f32) -> f32 {
    // 2/15 as f32; torchao multiplies instead of dividing.
    S::round(amax * 0.133_333_34)
}

/// Group scale relative to the row scale; zero if the row scale underflowed, where torchao has an infinity or a NaN.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn relative_scale<S: StepRounding>(scale: f32, row_scale: f32) -> f32 {
    let relative = S::round(scale / row_scale);
    f32::from_bits(select_bits(row_scale == 0.0, 0u32, relative.to_bits()))
}

/// Quantizes a value symmetrically.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn code<S: StepRounding>(x: f32, scale: f32, min: i32) -> i32 {
    clamp_i32(round_to_i32(S::round(div_or_zero(x, scale))), min, 7)
}

/// Rounds a 4-bit value times its group scale to int8. With bf16 scales the largest product may be 128, so it
/// saturates.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn to_int8(product: f32) -> i32 {
    clamp_i32(round_to_i32(product), -128, 127)
}
