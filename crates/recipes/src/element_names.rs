//! How element types are written.

use crate::names::written_as_a_name;
use crate::{Dtype, Element, RecipeError};
use std::{fmt, str::FromStr};

/// Each small type with its short name first, then every other accepted spelling.
const SPELLINGS: [(Element, &[&str]); 8] = [
    (Element::E4m3, &["e4m3", "float8", "fp8", "float8_e4m3fn", "float8_e4m3", "torch.float8_e4m3fn"]),
    (Element::E5m2, &["e5m2", "float8_e5m2", "torch.float8_e5m2"]),
    (Element::E3m2, &["e3m2", "float6_e3m2fn"]),
    (Element::E2m1, &["e2m1", "float4", "fp4", "float4_e2m1fn"]),
    (Element::E8m0, &["e8m0", "float8_e8m0fnu"]),
    (Element::Signed(8), &["i8", "int8", "torch.int8"]),
    (Element::Signed(4), &["i4", "int4"]),
    (Element::Signed(32), &["i32", "int32", "torch.int32"]),
];

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float(dtype) => dtype.fmt(f),
            Self::Signed(bits) => f.pad(&format!("i{bits}")),
            Self::Unsigned(bits) => f.pad(&format!("u{bits}")),
            other => f.pad(SPELLINGS.iter().find(|(one, _)| one == other).map_or("", |(_, names)| names[0])),
        }
    }
}

impl FromStr for Element {
    type Err = RecipeError;

    fn from_str(name: &str) -> Result<Self, RecipeError> {
        if let Some((element, _)) = SPELLINGS.iter().find(|(_, names)| names.contains(&name)) {
            return Ok(*element);
        }
        match name {
            "fp32" => Ok(Self::Float(Dtype::F32)),
            "fp16" => Ok(Self::Float(Dtype::F16)),
            _ => name
                .parse()
                .map(Self::Float)
                .map_err(|_| RecipeError::unknown("number type", name, Dtype::spellings().chain(small()))),
        }
    }
}

fn small() -> impl Iterator<Item = String> {
    SPELLINGS.iter().flat_map(|(_, names)| names.iter().map(ToString::to_string))
}

written_as_a_name!(
    Element,
    "NumberType",
    "a number type such as bf16, f32 or e4m3 (float8_e4m3fn and the like are accepted)",
    Dtype::spellings().chain(small()).chain(["fp32".into(), "fp16".into()]).collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_parses_and_short_names_round_trip() {
        for (element, names) in SPELLINGS {
            assert!(names.iter().all(|name| name.parse() == Ok(element)));
            assert_eq!(element.to_string(), names[0]);
        }
        assert_eq!("torch.bfloat16".parse(), Ok(Element::Float(Dtype::Bf16)));
        let error = "float8_e4m3fm".parse::<Element>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"float8_e4m3fn\""), "{error}");
    }
}
