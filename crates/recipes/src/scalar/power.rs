//! The power x^-0.3 of half-quadratic quantization.

use super::rounding::{prevent_fma, round_to_i32};
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// Bit pattern of sqrt(1/2), the lower end of the mantissa range [sqrt(1/2), sqrt(2)), which minimizes |log2|.
const SQRT_HALF_BITS: i32 = 0x3F35_04F3;

/// Returns x^-0.3 for positive normal numbers, with an error of at most two ULP.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn inverse_power(x: f32, opaque_zero: u32) -> f32 {
    let bits = x.to_bits() as i32;
    let exponent = (bits - SQRT_HALF_BITS) >> 23;
    let mantissa = f32::from_bits((bits - (exponent << 23)) as u32);
    // -0.3 log2(mantissa), by the series of the inverse hyperbolic tangent.
    let y = (mantissa - 1.0) / (mantissa + 1.0);
    let square = y * y;
    let series = prevent_fma(square * -0.123_659_57, opaque_zero) + -0.173_123_4;
    let series = prevent_fma(square * series, opaque_zero) + -0.288_539_02;
    let series = prevent_fma(square * series, opaque_zero) + -0.865_617_04;
    // -0.3 exponent, split into an integer and a fraction in tenths.
    let tenths = exponent * -3;
    let whole = round_to_i32(prevent_fma(tenths as f32 * 0.1, opaque_zero));
    let fraction = prevent_fma((tenths - whole * 10) as f32 * 0.1, opaque_zero) + prevent_fma(y * series, opaque_zero);
    // 2^fraction, by a polynomial.
    let power = prevent_fma(fraction * 0.000_155_190_41, opaque_zero) + 0.001_345_026_5;
    let power = prevent_fma(fraction * power, opaque_zero) + 0.009_617_814;
    let power = prevent_fma(fraction * power, opaque_zero) + 0.055_501_565;
    let power = prevent_fma(fraction * power, opaque_zero) + 0.240_226_54;
    let power = prevent_fma(fraction * power, opaque_zero) + 0.693_147_3;
    let power = prevent_fma(fraction * power, opaque_zero) + 1.0;
    f32::from_bits((power.to_bits() as i32 + (whole << 23)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverse_power_is_within_two_ulp() {
        let mut worst = 0.0f64;
        for i in 0..4_000_000u32 {
            let x = f32::from_bits(0x0080_0000 + i * 530);
            let exact = f64::from(x).powf(-0.3);
            worst = worst.max((f64::from(inverse_power(x, 0)) / exact - 1.0).abs());
        }
        assert!(worst < 2.0 * f64::from(f32::EPSILON), "{worst:e}");
    }
}
