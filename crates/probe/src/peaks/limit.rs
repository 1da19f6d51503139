//! Limits of the roofline.

use calorimeter_case::Dtype;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Precision of a matmul, with its own peak. Sorted by name, which is the order of probing and storing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MatmulPrecision {
    /// bfloat16.
    Bf16,
    /// 8-bit float with four exponent bits.
    E4m3,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// TF32: single precision rounded to 10 mantissa bits for tensor cores.
    Tf32,
}

impl MatmulPrecision {
    /// All precisions.
    pub const ALL: [Self; 5] = [Self::Bf16, Self::E4m3, Self::F16, Self::F32, Self::Tf32];

    /// Parses the name of a precision.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Dtype of models in this precision, if there is one.
    pub fn dtype(self) -> Option<Dtype> {
        match self {
            Self::Bf16 => Some(Dtype::Bf16),
            Self::F16 => Some(Dtype::F16),
            Self::F32 => Some(Dtype::F32),
            Self::E4m3 | Self::Tf32 => None,
        }
    }

    /// Name in files and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::E4m3 => "e4m3",
            Self::F16 => "f16",
            Self::F32 => "f32",
            Self::Tf32 => "tf32",
        }
    }
}

impl fmt::Display for MatmulPrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Limit that a case may approach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Memory bandwidth.
    Memory,
    /// Matmul rate in a precision.
    Matmul(MatmulPrecision),
}

impl Limit {
    /// Precision of a matmul limit.
    pub fn matmul_precision(self) -> Option<MatmulPrecision> {
        match self {
            Self::Memory => None,
            Self::Matmul(kind) => Some(kind),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.pad("memory"),
            Self::Matmul(kind) => kind.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_names_match_in_files_and_output() {
        for kind in MatmulPrecision::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!(
                (MatmulPrecision::from_name(kind.name()), kind.to_string()),
                (Some(kind), kind.name().to_owned())
            );
        }
        assert!(MatmulPrecision::ALL.is_sorted_by_key(|kind| kind.name()), "sorted by name");
    }
}
