//! What has a peak.

use calorimeter_case::Dtype;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A kind of number that products are computed in, each with a peak of its own. In the order of their names, in which they
/// are probed and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProductKind {
    /// bfloat16.
    Bf16,
    /// Codes of eight bits with four of exponent.
    E4m3,
    /// Half precision.
    F16,
    /// Single precision.
    F32,
    /// Single precision, rounded to mantissas of ten bits for tensor cores.
    Tf32,
}

impl ProductKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Bf16, Self::E4m3, Self::F16, Self::F32, Self::Tf32];

    /// The kind of a name, as it is kept.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The type that models have, where it is one.
    pub fn dtype(self) -> Option<Dtype> {
        match self {
            Self::Bf16 => Some(Dtype::Bf16),
            Self::F16 => Some(Dtype::F16),
            Self::F32 => Some(Dtype::F32),
            Self::E4m3 | Self::Tf32 => None,
        }
    }

    /// As it is kept and printed.
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

impl fmt::Display for ProductKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a case may come near to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// What memory moves.
    Memory,
    /// What products of a kind of number reach.
    Products(ProductKind),
}

impl Limit {
    /// The kind of number, where it is one of products.
    pub fn product(self) -> Option<ProductKind> {
        match self {
            Self::Memory => None,
            Self::Products(kind) => Some(kind),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.pad("memory"),
            Self::Products(kind) => kind.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_one_name_in_files_and_in_print() {
        for kind in ProductKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
            assert_eq!((ProductKind::named(kind.name()), kind.to_string()), (Some(kind), kind.name().to_owned()));
        }
        assert!(ProductKind::ALL.is_sorted_by_key(|kind| kind.name()), "they are kept in the order of their names");
    }
}
