//! Floating-point dtypes of models.

use crate::UnknownName;
use std::{fmt, str::FromStr};

/// High-precision dtype of a model: activations, and weights before quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dtype {
    /// 32-bit IEEE float.
    F32,
    /// 16-bit IEEE float.
    F16,
    /// Upper half of a 32-bit float.
    Bf16,
}

/// Each dtype with its short name first, then all other accepted spellings.
const SPELLINGS: [(Dtype, &[&str]); 3] = [
    (Dtype::F32, &["f32", "float32", "torch.float32", "float", "torch.float"]),
    (Dtype::F16, &["f16", "float16", "torch.float16", "half", "torch.half"]),
    (Dtype::Bf16, &["bf16", "bfloat16", "torch.bfloat16"]),
];

impl Dtype {
    /// All dtypes.
    pub const ALL: [Self; 3] = [Self::F32, Self::F16, Self::Bf16];

    /// `f32`, `f16` or `bf16`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }

    /// Bytes per element.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }

    /// Bytes per element as `usize`.
    pub const fn width(self) -> usize {
        self.bytes() as usize
    }

    /// Unit roundoff: maximum relative error of rounding to this dtype.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F32 => 2f64.powi(-24),
            Self::F16 => 2f64.powi(-11),
            Self::Bf16 => 2f64.powi(-8),
        }
    }

    /// All accepted spellings of all dtypes.
    pub(crate) fn spellings() -> impl Iterator<Item = String> {
        SPELLINGS.iter().flat_map(|(_, spellings)| spellings.iter().map(ToString::to_string))
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Dtype {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = SPELLINGS.iter().find(|(_, spellings)| spellings.contains(&name)).map(|(dtype, _)| *dtype);
        found.ok_or_else(|| UnknownName::new("dtype", name, SPELLINGS.iter().flat_map(|(_, s)| s[..3].iter().copied())))
    }
}

crate::written_as_a_name!(
    Dtype,
    "Dtype",
    "a float dtype such as bf16, f16 or f32 (spellings such as torch.bfloat16 are accepted)",
    Dtype::spellings().collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_parse_and_names_round_trip() {
        for (dtype, spellings) in SPELLINGS {
            assert!(spellings.iter().all(|s| s.parse() == Ok(dtype)));
            assert_eq!(dtype.to_string(), spellings[0]);
        }
        assert_eq!("torch.bfloat61".parse::<Dtype>().unwrap_err().nearest.as_deref(), Some("torch.bfloat16"));
    }
}
