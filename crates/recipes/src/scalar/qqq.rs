//! QQQ: 4-bit codes, group scales relative to a row's scale of 8-bit integers.

use super::rounding::{Steps, bounded, either, to_integer};
use super::rules::over;
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// A group's scale before it is related to its row's.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn group_scale<S: Steps>(amax: f32) -> f32 {
    // 2/15 as f32; torchao multiplies.
    S::round(amax * 0.133_333_34)
}

/// A group's scale in steps of its row's; zero where the row's has vanished, where torchao has an infinity or a NaN.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn related<S: Steps>(scale: f32, own: f32) -> f32 {
    let related = S::round(scale / own);
    f32::from_bits(either(own == 0.0, 0u32, related.to_bits()))
}

/// A number's code around zero.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn code<S: Steps>(x: f32, scale: f32, least: i32) -> i32 {
    bounded(to_integer(S::round(over(x, scale))), least, 7)
}

/// The 8-bit integer that a code times its group's scale is rounded to. Under scales of bf16 the largest may come out as 128.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn byte(product: f32) -> i32 {
    bounded(to_integer(product), -128, 127)
}
