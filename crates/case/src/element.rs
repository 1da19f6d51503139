//! Element types of tensors and their spellings.

use crate::{Dtype, UnknownName};
use std::{fmt, str::FromStr};

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Element {
    /// Two's complement integer with this number of bits.
    Signed(u8),
    /// Unsigned integer with this number of bits.
    Unsigned(u8),
    /// 4 exponent and 3 mantissa bits, no infinities.
    E4m3,
    /// 5 exponent and 2 mantissa bits.
    E5m2,
    /// 3 exponent and 2 mantissa bits, neither infinities nor NaN.
    E3m2,
    /// 2 exponent bits and 1 mantissa bit, neither infinities nor NaN.
    E2m1,
    /// A power of two; 255 is NaN.
    E8m0,
    /// Floating-point dtype of a model.
    Float(Dtype),
}

/// Each small type with its short name first, then all other accepted spellings.
const SPELLINGS: [(Element, &[&str]); 9] = [
    (Element::E4m3, &["e4m3", "float8", "fp8", "float8_e4m3fn", "float8_e4m3", "torch.float8_e4m3fn"]),
    (Element::E5m2, &["e5m2", "float8_e5m2", "torch.float8_e5m2"]),
    (Element::E3m2, &["e3m2", "float6_e3m2fn"]),
    (Element::E2m1, &["e2m1", "float4", "fp4", "float4_e2m1fn"]),
    (Element::E8m0, &["e8m0", "float8_e8m0fnu"]),
    (Element::Signed(8), &["i8", "int8", "torch.int8"]),
    (Element::Signed(4), &["i4", "int4"]),
    (Element::Unsigned(8), &["u8", "uint8", "torch.uint8"]),
    (Element::Signed(32), &["i32", "int32", "torch.int32"]),
];

impl Element {
    /// All types that can be requested by name, floats first.
    pub fn all() -> impl Iterator<Item = Self> {
        Dtype::ALL.into_iter().map(Self::Float).chain(SPELLINGS.iter().map(|(element, _)| *element))
    }

    /// Bits per element.
    pub fn bits(self) -> u32 {
        match self {
            Self::Signed(bits) | Self::Unsigned(bits) => u32::from(bits),
            Self::E4m3 | Self::E5m2 | Self::E8m0 => 8,
            Self::E3m2 => 6,
            Self::E2m1 => 4,
            Self::Float(dtype) => dtype.bytes() as u32 * 8,
        }
    }

    /// 32-bit words that hold `count` packed values.
    pub fn words_for(self, count: usize) -> usize {
        (count * self.bits() as usize).div_ceil(32)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(dtype) => dtype.fmt(f),
            Self::Signed(bits) => f.pad(&format!("i{bits}")),
            Self::Unsigned(bits) => f.pad(&format!("u{bits}")),
            small => f.pad(SPELLINGS.iter().find(|(element, _)| element == small).map_or("", |(_, names)| names[0])),
        }
    }
}

impl FromStr for Element {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        if let Some((element, _)) = SPELLINGS.iter().find(|(_, names)| names.contains(&name)) {
            return Ok(*element);
        }
        match name {
            "fp32" => Ok(Self::Float(Dtype::F32)),
            "fp16" => Ok(Self::Float(Dtype::F16)),
            // Types that only buffers of external programs have.
            "i16" | "int16" => Ok(Self::Signed(16)),
            "i64" | "int64" => Ok(Self::Signed(64)),
            _ => name
                .parse()
                .map(Self::Float)
                .map_err(|_| UnknownName::new("dtype", name, Dtype::spellings().chain(small_type_spellings()))),
        }
    }
}

fn small_type_spellings() -> impl Iterator<Item = String> {
    SPELLINGS.iter().flat_map(|(_, names)| names.iter().map(ToString::to_string))
}

impl From<Dtype> for Element {
    fn from(dtype: Dtype) -> Self {
        Self::Float(dtype)
    }
}

crate::written_as_a_name!(
    Element,
    "NumberType",
    "a dtype such as bf16, f32 or e4m3 (spellings such as float8_e4m3fn are accepted)",
    Dtype::spellings().chain(small_type_spellings()).chain(["fp32".into(), "fp16".into()]).collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_parse_and_names_round_trip() {
        for (element, names) in SPELLINGS {
            assert!(names.iter().all(|name| name.parse() == Ok(element)));
            assert_eq!(element.to_string(), names[0]);
        }
        for element in [Element::Signed(16), Element::Signed(64)] {
            assert_eq!(element.to_string().parse(), Ok(element));
        }
        assert_eq!("torch.bfloat16".parse(), Ok(Element::Float(Dtype::Bf16)));
        assert_eq!("float8_e4m3fm".parse::<Element>().unwrap_err().nearest.as_deref(), Some("float8_e4m3fn"));
    }
}
