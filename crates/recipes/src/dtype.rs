//! The float types that models run in.

use crate::RecipeError;
use crate::names::written_as_a_name;
use burn::tensor::DType;
use half::{bf16, f16};
use std::{fmt, str::FromStr};

/// The high-precision type of a model: its activations, and its weights before they are quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    /// 32-bit IEEE float.
    F32,
    /// 16-bit IEEE float.
    F16,
    /// The upper half of a 32-bit float.
    Bf16,
}

/// Each type with its short name first, then every other accepted spelling.
const SPELLINGS: [(Dtype, &[&str]); 3] = [
    (Dtype::F32, &["f32", "float32", "torch.float32", "float", "torch.float"]),
    (Dtype::F16, &["f16", "float16", "torch.float16", "half", "torch.half"]),
    (Dtype::Bf16, &["bf16", "bfloat16", "torch.bfloat16"]),
];

impl Dtype {
    /// Every type.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// Bytes of one element.
    pub fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// The largest relative error of rounding to this type.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F32 => 2f64.powi(-24),
            Self::F16 => 2f64.powi(-11),
            Self::Bf16 => 2f64.powi(-8),
        }
    }

    /// The nearest value of this type, ties to even.
    pub fn round(self, value: f32) -> f32 {
        match self {
            Self::F32 => value,
            Self::F16 => f16::from_f32(value).to_f32(),
            Self::Bf16 => bf16::from_f32(value).to_f32(),
        }
    }

    /// Every accepted spelling of every type.
    pub(crate) fn spellings() -> impl Iterator<Item = String> {
        SPELLINGS.iter().flat_map(|(_, spellings)| spellings.iter().map(ToString::to_string))
    }

    /// The same type in burn.
    pub fn burn(self) -> DType {
        match self {
            Self::F32 => DType::F32,
            Self::F16 => DType::F16,
            Self::Bf16 => DType::BF16,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        })
    }
}

impl FromStr for Dtype {
    type Err = RecipeError;

    fn from_str(name: &str) -> Result<Self, RecipeError> {
        SPELLINGS.iter().find(|(_, spellings)| spellings.contains(&name)).map(|(dtype, _)| *dtype).ok_or_else(|| {
            RecipeError::unknown(
                "dtype",
                name,
                SPELLINGS.iter().flat_map(|(_, s)| s[..3].iter().map(ToString::to_string)),
            )
        })
    }
}

written_as_a_name!(
    Dtype,
    "Dtype",
    "a float type such as bf16, f16 or f32 (torch.bfloat16 and the like are accepted)",
    Dtype::spellings().collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_parses_and_short_names_round_trip() {
        for (dtype, spellings) in SPELLINGS {
            assert!(spellings.iter().all(|s| s.parse() == Ok(dtype)));
            assert_eq!(dtype.to_string(), spellings[0]);
        }
        let error = "torch.bfloat61".parse::<Dtype>().unwrap_err().to_string();
        assert!(error.contains("did you mean \"torch.bfloat16\""), "{error}");
    }

    #[test]
    fn rounding_is_to_nearest_even() {
        assert_eq!(Dtype::Bf16.round(1.0 + 1.0 / 256.0), 1.0);
        assert_eq!(Dtype::Bf16.round(1.0 + 3.0 / 256.0), 1.0 + 4.0 / 256.0);
        assert_eq!(Dtype::F16.round(2049.0), 2048.0);
        assert_eq!(Dtype::F32.round(0.1), 0.1);
    }
}
