//! Conversion to and from floats of at most 8 bits: nearest value, ties to even, saturating.

use super::rounding::select_bits;
#[cfg(feature = "cube")]
use cubecl::prelude::*;

/// Encodes a magnitude with `mantissa` explicit bits and exponent bias `bias`, saturating at `max_magnitude`. Adding
/// `rounder` to a subnormal rounds it to the precision of the format.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn encode_magnitude(x: f32, mantissa: u32, bias: u32, max_magnitude: u32, rounder: f32) -> u32 {
    let magnitude = x.to_bits() & 0x7FFF_FFFF;
    let min_normal = (128 - bias) << 23;
    let normal = select_bits(magnitude < min_normal, min_normal, magnitude);
    let dropped = 23 - mantissa;
    let even = (normal >> dropped) & 1;
    let rounded = (normal + ((1u32 << (dropped - 1)) - 1) + even) >> dropped;
    let rounded = rounded - ((127 - bias) << mantissa);
    let tiny = select_bits(magnitude < min_normal, magnitude, min_normal);
    // Bit pattern of `rounder`.
    let rounder_bits = (151 - bias - mantissa) << 23;
    let subnormal = (f32::from_bits(tiny) + rounder).to_bits() - rounder_bits;
    let code = select_bits(magnitude < min_normal, subnormal, rounded);
    select_bits(code < max_magnitude, code, max_magnitude)
}

/// Decodes a magnitude; `min_normal` is the smallest normal value.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn decode_magnitude(code: u32, mantissa: u32, bias: u32, min_normal: f32) -> f32 {
    let exponent = (128 - bias) << 23;
    let normal = (code << (23 - mantissa)) + ((127 - bias) << 23);
    // Decodes subnormals with the exponent of the smallest normal value, then subtracts the implicit leading one
    // exactly.
    let subnormal = f32::from_bits(exponent | (code << (23 - mantissa))) - min_normal;
    f32::from_bits(select_bits(code < (1u32 << mantissa), subnormal.to_bits(), normal))
}

/// Returns 2^(exponent - 127); 2^-127 is subnormal.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn power_of_two(exponent: u32) -> f32 {
    f32::from_bits(select_bits(exponent == 0, 0x0040_0000u32, exponent << 23))
}

/// Combines the sign of `x` with a magnitude of `bits - 1` bits.
#[cfg_attr(feature = "cube", cube)]
#[inline(always)]
pub fn with_sign(x: f32, magnitude: u32, bits: u32) -> u32 {
    magnitude | ((x.to_bits() >> 31) << (bits - 1))
}

/// Float of at most 8 bits.
#[cfg_attr(feature = "cube", cube)]
pub trait Minifloat: Send + Sync + 'static {
    /// Encodes to the nearest value. Infinities saturate; the result for NaN is unspecified.
    fn encode(x: f32) -> u32;
    /// Decodes a quantized value.
    fn decode(code: u32) -> f32;
}

/// 4 exponent and 3 mantissa bits, no infinities, up to 448.
#[derive(Debug, Clone, Copy)]
pub struct E4m3;
/// 5 exponent and 2 mantissa bits, up to 57344.
#[derive(Debug, Clone, Copy)]
pub struct E5m2;
/// 3 exponent and 2 mantissa bits, up to 28.
#[derive(Debug, Clone, Copy)]
pub struct E3m2;
/// 2 exponent bits and 1 mantissa bit, up to 6.
#[derive(Debug, Clone, Copy)]
pub struct E2m1;

#[cfg_attr(feature = "cube", cube)]
impl Minifloat for E4m3 {
    #[inline(always)]
    fn encode(x: f32) -> u32 {
        with_sign(x, encode_magnitude(x, 3u32, 7u32, 0x7Eu32, 16384.0), 8u32)
    }

    #[inline(always)]
    fn decode(code: u32) -> f32 {
        let sign = (code & 0x80) << 24;
        let number = decode_magnitude(code & 0x7F, 3u32, 7u32, 0.015_625);
        let bits = select_bits((code & 0x7F) == 0x7F, 0x7FC0_0000u32, number.to_bits());
        f32::from_bits(bits | sign)
    }
}

#[cfg_attr(feature = "cube", cube)]
impl Minifloat for E5m2 {
    #[inline(always)]
    fn encode(x: f32) -> u32 {
        with_sign(x, encode_magnitude(x, 2u32, 15u32, 0x7Bu32, 128.0), 8u32)
    }

    #[inline(always)]
    fn decode(code: u32) -> f32 {
        let sign = (code & 0x80) << 24;
        let magnitude = code & 0x7F;
        let number = decode_magnitude(magnitude, 2u32, 15u32, 0.000_061_035_156).to_bits();
        let bits = select_bits(magnitude == 0x7C, 0x7F80_0000u32, number);
        let bits = select_bits(magnitude > 0x7C, 0x7FC0_0000u32, bits);
        f32::from_bits(bits | sign)
    }
}

#[cfg_attr(feature = "cube", cube)]
impl Minifloat for E3m2 {
    #[inline(always)]
    fn encode(x: f32) -> u32 {
        with_sign(x, encode_magnitude(x, 2u32, 3u32, 0x1Fu32, 524_288.0), 6u32)
    }

    #[inline(always)]
    fn decode(code: u32) -> f32 {
        f32::from_bits(decode_magnitude(code & 0x1F, 2u32, 3u32, 0.25).to_bits() | ((code & 0x20) << 26))
    }
}

#[cfg_attr(feature = "cube", cube)]
impl Minifloat for E2m1 {
    #[inline(always)]
    fn encode(x: f32) -> u32 {
        with_sign(x, encode_magnitude(x, 1u32, 1u32, 0x7u32, 4_194_304.0), 4u32)
    }

    #[inline(always)]
    fn decode(code: u32) -> f32 {
        f32::from_bits(decode_magnitude(code & 0x7, 1u32, 1u32, 1.0).to_bits() | ((code & 0x8) << 28))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    /// All finite magnitudes of a format with their encodings, from the definition of the format.
    fn table(exponent_bits: u32, mantissa_bits: u32, largest: u32) -> Vec<(f64, u32)> {
        let bias = (1 << (exponent_bits - 1)) - 1;
        (0..=largest)
            .map(|code| {
                let (exponent, mantissa) = (code >> mantissa_bits, f64::from(code & ((1 << mantissa_bits) - 1)));
                let fraction = mantissa / f64::from(1 << mantissa_bits);
                let value = match exponent {
                    0 => fraction * 2f64.powi(1 - bias),
                    e => (1.0 + fraction) * 2f64.powi(e as i32 - bias),
                };
                (value, code)
            })
            .collect()
    }

    /// Nearest entry, ties to the even encoding.
    fn nearest(table: &[(f64, u32)], x: f64) -> u32 {
        let distance = |entry: &(f64, u32)| (entry.0 - x.abs()).abs();
        let closest = table.iter().map(distance).fold(f64::INFINITY, f64::min);
        let mut ties = table.iter().filter(|entry| distance(entry) == closest).map(|entry| entry.1);
        let first = ties.next().unwrap();
        ties.next().map_or(first, |second| if first % 2 == 0 { first } else { second })
    }

    fn check<M: Minifloat>(exponent_bits: u32, mantissa_bits: u32, largest: u32) {
        let sign = 1 << (exponent_bits + mantissa_bits);
        let table = table(exponent_bits, mantissa_bits, largest);
        for &(value, code) in &table {
            assert_eq!(M::decode(code), value as f32);
            assert_eq!(M::decode(code | sign).to_bits(), (-value as f32).to_bits());
            assert_eq!(M::encode(value as f32), code);
        }
        for half in (0..=u16::MAX).map(f16::from_bits).filter(|half| !half.is_nan()) {
            let x = half.to_f32();
            let expected = if x.is_infinite() { largest } else { nearest(&table, f64::from(x)) };
            let negative = if x.is_sign_negative() { sign } else { 0 };
            assert_eq!(M::encode(x), expected | negative, "{x:e}");
        }
    }

    #[test]
    fn casts_match_exhaustive_table() {
        check::<E4m3>(4, 3, 0x7E);
        check::<E5m2>(5, 2, 0x7B);
        check::<E3m2>(3, 2, 0x1F);
        check::<E2m1>(2, 1, 0x7);
    }

    #[test]
    fn nan_codes_decode_to_nan() {
        assert!(E4m3::decode(0x7F).is_nan() && E4m3::decode(0xFF).is_nan());
        assert!(E5m2::decode(0x7D).is_nan() && E5m2::decode(0x7C) == f32::INFINITY);
    }
}
