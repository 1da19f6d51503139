//! The one power that half-quadratic quantization needs.

use super::rounding::{apart, to_integer};
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// The square root of one half, where mantissas are cut so that their logarithms are smallest.
const CUT: i32 = 0x3F35_04F3;

/// x to the power of -0.3, within two units in the last place, for positive normal numbers.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn inverse_power(x: f32, blank: u32) -> f32 {
    let bits = x.to_bits() as i32;
    let exponent = (bits - CUT) >> 23;
    let mantissa = f32::from_bits((bits - (exponent << 23)) as u32);
    // -0.3 log2(mantissa) by the series of the inverse hyperbolic tangent.
    let y = (mantissa - 1.0) / (mantissa + 1.0);
    let square = y * y;
    let series = apart(square * -0.123_659_57, blank) + -0.173_123_4;
    let series = apart(square * series, blank) + -0.288_539_02;
    let series = apart(square * series, blank) + -0.865_617_04;
    // -0.3 exponent, parted into an integer and a fraction of tenths.
    let tenths = exponent * -3;
    let whole = to_integer(apart(tenths as f32 * 0.1, blank));
    let fraction = apart((tenths - whole * 10) as f32 * 0.1, blank) + apart(y * series, blank);
    // 2 to the fraction.
    let power = apart(fraction * 0.000_155_190_41, blank) + 0.001_345_026_5;
    let power = apart(fraction * power, blank) + 0.009_617_814;
    let power = apart(fraction * power, blank) + 0.055_501_565;
    let power = apart(fraction * power, blank) + 0.240_226_54;
    let power = apart(fraction * power, blank) + 0.693_147_3;
    let power = apart(fraction * power, blank) + 1.0;
    f32::from_bits((power.to_bits() as i32 + (whole << 23)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_power_is_right_to_two_units_in_the_last_place() {
        let mut worst = 0.0f64;
        for i in 0..4_000_000u32 {
            let x = f32::from_bits(0x0080_0000 + i * 530);
            let exact = f64::from(x).powf(-0.3);
            worst = worst.max((f64::from(inverse_power(x, 0)) / exact - 1.0).abs());
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst:e}");
    }
}
