//! Rounding to integers, f16 and bf16, ties to even.

#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// Bit pattern of 12582912 = 1.5 * 2^23; adding it to a float rounds away the fraction.
const ROUND_MAGIC_BITS: u32 = 0x4B40_0000;
/// Upper bound of magnitudes that are rounded; every integer format has a far smaller range.
const MAX_ROUNDED: f32 = 4_194_304.0;

/// Prevents contraction of a product into a fused multiply-add. `opaque_zero` is a zero that the compiler cannot
/// constant-fold.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn prevent_fma(product: f32, opaque_zero: u32) -> f32 {
    f32::from_bits(product.to_bits() ^ opaque_zero)
}

/// Selects one of two words.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn select_bits(condition: bool, if_true: u32, if_false: u32) -> u32 {
    if condition { if_true } else { if_false }
}

/// Returns the smaller value.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn min_f32(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// Returns the larger value.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn max_f32(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// True for NaN, by bit pattern: `x != x` may be optimized away.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn is_nan(x: f32) -> bool {
    (x.to_bits() & 0x7FFF_FFFF) > 0x7F80_0000
}

/// Rounds to the nearest integer, ties to even; magnitudes above 2^22 saturate. The argument must not be a bare
/// product, see [`prevent_fma()`].
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn round_to_i32(x: f32) -> i32 {
    let x = max_f32(min_f32(x, MAX_ROUNDED), -MAX_ROUNDED);
    let shifted = x + 12_582_912.0;
    shifted.to_bits() as i32 - ROUND_MAGIC_BITS as i32
}

/// Clamps an integer.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn clamp_i32(x: i32, min: i32, max: i32) -> i32 {
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

/// Rounds to bf16; infinities and NaN pass through.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let even = (bits >> 16) & 1;
    let rounded = (bits + 0x7FFF + even) & 0xFFFF_0000u32;
    let finite = (bits & 0x7FFF_FFFF) < 0x7F80_0000;
    f32::from_bits(select_bits(finite, rounded, bits))
}

/// Rounds to f16; infinities and NaN pass through.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn to_f16(x: f32) -> f32 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    let even = (magnitude >> 13) & 1;
    let normal = (magnitude + 0xFFF + even) & 0xFFFF_E000u32;
    let normal = select_bits(normal < 0x4780_0000, normal, 0x7F80_0000u32);
    // Below 2^-14 the spacing of f16 is 2^-24. Adding and subtracting 0.5, where f32 has this spacing, rounds to it
    // exactly.
    let shifted = f32::from_bits(magnitude) + 0.5;
    let subnormal = (shifted.to_bits() - 0x3F00_0000) as f32 * 5.960_464_5e-8;
    let subnormal = subnormal.to_bits();
    let rounded = select_bits(magnitude < 0x3880_0000, subnormal, normal);
    let rounded = select_bits(magnitude < 0x7F80_0000, rounded, magnitude);
    f32::from_bits(rounded | (bits & 0x8000_0000u32))
}

/// Dtype to which each step of a computation is rounded.
#[cfg_attr(feature = "cube", cube)]
pub trait StepRounding: Send + Sync + 'static {
    /// Rounds to the nearest value of the dtype.
    fn round(x: f32) -> f32;
}

/// f32: no further rounding.
#[derive(Debug, Clone, Copy)]
pub struct RoundF32;
/// Rounding to f16.
#[derive(Debug, Clone, Copy)]
pub struct RoundF16;
/// Rounding to bf16.
#[derive(Debug, Clone, Copy)]
pub struct RoundBf16;

#[cfg_attr(feature = "cube", cube)]
impl StepRounding for RoundF32 {
    #[inline(always)]
    fn round(x: f32) -> f32 {
        x
    }
}

#[cfg_attr(feature = "cube", cube)]
impl StepRounding for RoundF16 {
    #[inline(always)]
    fn round(x: f32) -> f32 {
        to_f16(x)
    }
}

#[cfg_attr(feature = "cube", cube)]
impl StepRounding for RoundBf16 {
    #[inline(always)]
    fn round(x: f32) -> f32 {
        to_bf16(x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::{bf16, f16};

    fn patterns() -> impl Iterator<Item = f32> {
        let spread = (0..2_000_000u32).map(|i| i.wrapping_mul(0x9E37_79B9));
        let halves = (0..=u16::MAX).flat_map(|h| {
            let bits = f16::from_bits(h).to_f32().to_bits();
            [bits, bits.wrapping_add(0x1000), bits.wrapping_add(0xFFF), bits.wrapping_sub(1)]
        });
        spread.chain(halves).map(f32::from_bits).filter(|x| !x.is_nan())
    }

    #[test]
    fn sixteen_bit_rounding_matches_hardware() {
        for x in patterns() {
            assert_eq!(to_bf16(x).to_bits(), bf16::from_f32(x).to_f32().to_bits(), "{x:e}");
            assert_eq!(to_f16(x).to_bits(), f16::from_f32(x).to_f32().to_bits(), "{x:e}");
        }
        assert!(to_bf16(f32::NAN).is_nan() && to_f16(f32::NAN).is_nan());
    }

    #[test]
    fn integer_ties_round_to_even() {
        for x in patterns().filter(|x| x.abs() <= MAX_ROUNDED) {
            assert_eq!(round_to_i32(x), x.round_ties_even() as i32, "{x:e}");
        }
        assert_eq!((round_to_i32(1e30), round_to_i32(-1e30)), (4_194_304, -4_194_304));
    }
}
