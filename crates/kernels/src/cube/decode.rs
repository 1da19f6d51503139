//! Decoding of packed values in kernels.

use crate::format::{Format, ZeroPoint};
use crate::scalar::minifloat::{E2m1, E3m2, E4m3, E5m2, Minifloat, decode_magnitude, power_of_two};
use crate::scalar::rounding::select_bits;
use crate::{Dtype, Element};
use cubecl::prelude::*;

/// Dequantization formula of a packed tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DequantMode {
    /// `value * scale`.
    ScaleOnly,
    /// `(value - zero) * scale`.
    ZeroBeforeScale(Element),
    /// `(value - midpoint) * scale + zero`.
    ZeroAfterScale(Element),
    /// `value * scale`, rounded to int8.
    RoundedToInt8,
}

impl DequantMode {
    /// Dequantization formula of a format.
    pub fn of_format(format: &Format) -> Self {
        match format.zero {
            ZeroPoint::None if format.rounds_to_int8() => Self::RoundedToInt8,
            ZeroPoint::None => Self::ScaleOnly,
            ZeroPoint::BeforeScale(element) => Self::ZeroBeforeScale(element),
            ZeroPoint::AfterScale(element) => Self::ZeroAfterScale(element),
        }
    }

    /// Bits of a zero point; 0 without zero points.
    pub fn bits(self) -> u32 {
        match self {
            Self::ZeroBeforeScale(element) | Self::ZeroAfterScale(element) => element.bits(),
            Self::ScaleOnly | Self::RoundedToInt8 => 0,
        }
    }
}

/// Extracts a value, which may span two words.
#[cube]
pub fn unpack_value(words: &Array<u32>, first: usize, index: usize, #[comptime] bits: u32) -> u32 {
    let at = index * comptime!(bits as usize);
    let (word, shift) = (first + at / 32, (at % 32) as u32);
    let mut code = words[word] >> shift;
    if comptime!(32 % bits != 0) {
        if shift + bits > 32 {
            code |= words[word + 1] << (32 - shift);
        }
    }
    code & comptime!(u32::MAX >> (32 - bits))
}

/// Extracts and decodes an element of a packed array.
#[cube]
pub fn decode_packed(words: &Array<u32>, index: usize, #[comptime] element: Element) -> f32 {
    decode(unpack_value(words, 0, index, comptime!(element.bits())), element)
}

/// Decodes a quantized value.
#[cube]
pub fn decode(code: u32, #[comptime] element: Element) -> f32 {
    match comptime!(element) {
        Element::Signed(bits) => {
            let shift = comptime!(32 - u32::from(bits));
            ((code << shift) as i32 >> comptime!(shift as i32)) as f32
        }
        Element::Unsigned(_) => code as f32,
        Element::E4m3 => E4m3::decode(code),
        Element::E5m2 => E5m2::decode(code),
        Element::E3m2 => E3m2::decode(code),
        Element::E2m1 => E2m1::decode(code),
        Element::E8m0 => f32::from_bits(select_bits(code == 255, 0x7FC0_0000u32, power_of_two(code).to_bits())),
        Element::Float(Dtype::F32) => f32::from_bits(code),
        Element::Float(Dtype::Bf16) => f32::from_bits(code << 16),
        Element::Float(Dtype::F16) => decode_f16(code),
    }
}

/// Decodes an element. Integers of at most 8 bits are inserted into the low bits of 2^23, which is then subtracted,
/// because conversions run at a fraction of the rate of additions.
#[cube]
pub fn decode_fast(code: u32, #[comptime] element: Element) -> f32 {
    match comptime!(element) {
        Element::Signed(bits) => {
            let sign = comptime!(1u32 << (u32::from(bits) - 1));
            f32::from_bits((code ^ sign) | 0x4B00_0000) - comptime!((0x0080_0000 + sign) as f32)
        }
        Element::Unsigned(_) => f32::from_bits(code | 0x4B00_0000) - 8_388_608.0,
        _ => decode(code, element),
    }
}

/// Decodes the bit pattern of an f16.
#[cube]
fn decode_f16(code: u32) -> f32 {
    let magnitude = code & 0x7FFF;
    let finite = decode_magnitude(magnitude, 10u32, 15u32, 0.000_061_035_156).to_bits();
    let special = 0x7F80_0000u32 | ((magnitude & 0x3FF) << 13);
    f32::from_bits(select_bits(magnitude < 0x7C00, finite, special) | ((code & 0x8000) << 16))
}
