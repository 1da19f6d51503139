//! Encoding and decoding of element types.

use crate::scalar::minifloat::{E2m1, E3m2, E4m3, E5m2, Minifloat, power_of_two};
use calorimeter_case::{Dtype, Element};
use half::{bf16, f16};

/// Conversion between values and quantized values of an [`Element`] type.
pub trait ElementCodec: Copy {
    /// Largest finite value.
    fn max_value(self) -> f32;

    /// Returns the value of a quantized value.
    fn decode(self, code: u32) -> f32;

    /// Encodes a value that the type represents exactly; other values are rounded or saturate.
    fn encode(self, number: f32) -> u32;
}

impl ElementCodec for Element {
    fn max_value(self) -> f32 {
        match self {
            Self::Signed(bits) => ((1u32 << (bits - 1)) - 1) as f32,
            Self::Unsigned(bits) => ((1u32 << bits) - 1) as f32,
            Self::E4m3 => 448.0,
            Self::E5m2 => 57344.0,
            Self::E3m2 => 28.0,
            Self::E2m1 => 6.0,
            Self::E8m0 => power_of_two(254),
            Self::Float(Dtype::F32) => f32::MAX,
            Self::Float(Dtype::F16) => f16::MAX.to_f32(),
            Self::Float(Dtype::Bf16) => bf16::MAX.to_f32(),
        }
    }

    #[inline(always)]
    fn decode(self, code: u32) -> f32 {
        match self {
            Self::Signed(bits) => ((code << (32 - bits)) as i32 >> (32 - bits)) as f32,
            Self::Unsigned(_) => code as f32,
            Self::E4m3 => E4m3::decode(code),
            Self::E5m2 => E5m2::decode(code),
            Self::E3m2 => E3m2::decode(code),
            Self::E2m1 => E2m1::decode(code),
            Self::E8m0 if code == 255 => f32::NAN,
            Self::E8m0 => power_of_two(code),
            Self::Float(Dtype::F32) => f32::from_bits(code),
            Self::Float(Dtype::F16) => f16::from_bits(code as u16).to_f32(),
            Self::Float(Dtype::Bf16) => f32::from_bits(code << 16),
        }
    }

    fn encode(self, number: f32) -> u32 {
        match self {
            Self::Signed(bits) => number as i32 as u32 & (u32::MAX >> (32 - u32::from(bits))),
            Self::Unsigned(_) => number as u32,
            Self::E4m3 if number.is_nan() => 0x7F,
            Self::E4m3 => E4m3::encode(number),
            Self::E5m2 if number.is_nan() => 0x7F,
            Self::E5m2 => E5m2::encode(number),
            Self::E3m2 => E3m2::encode(number),
            Self::E2m1 => E2m1::encode(number),
            Self::E8m0 if number.is_nan() => 255,
            Self::E8m0 => number.to_bits() >> 23,
            Self::Float(Dtype::F32) => number.to_bits(),
            Self::Float(Dtype::F16) => u32::from(f16::from_f32(number).to_bits()),
            Self::Float(Dtype::Bf16) => u32::from(bf16::from_f32(number).to_bits()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_codes_round_trip() {
        let small = [Element::E4m3, Element::E5m2, Element::E3m2, Element::E2m1, Element::E8m0];
        let integers = (1..=8).flat_map(|bits| [Element::Signed(bits), Element::Unsigned(bits)]);
        for element in small.into_iter().chain(integers) {
            for code in 0..1u32 << element.bits() {
                let number = element.decode(code);
                if number.is_finite() {
                    assert_eq!(element.encode(number), code, "{element:?}");
                }
            }
        }
    }
}
