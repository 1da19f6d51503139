//! `gemlitewo-4[-{group}]` and `gemlitewo-8[-{group}]`: weight formats of gemlite, unquantized activations.
//!
//! 4 bits: half-quadratic quantization in groups of 64 by default; the zero point is subtracted before scaling: value =
//! (q - zero) * scale. 8 bits: symmetric over -128..=127, one scale per output channel, at least 1e-5; the group is
//! parsed and ignored, as in torchao. Scales and zero points are in the dtype of the weight. The layer multiplies
//! dequantized values; gemlite's own kernels may compute differently.

use crate::format::{Format, Grouping, QuantMethod, ZeroPoint};
use crate::{Dtype, Element, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use calorimeter_case::parse_positive;
use std::fmt;

/// Gemlite weight-only quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Gemlite {
    /// 4-bit weights.
    Int4 {
        /// Values that share a scale.
        group: u32,
    },
    /// 8-bit weights.
    Int8,
}

impl fmt::Display for Gemlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int4 { group } => f.pad(&format!("gemlitewo-4-{group}")),
            Self::Int8 => f.pad("gemlitewo-8"),
        }
    }
}

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["gemlitewo-{4|8}", "gemlitewo-{4|8}-{group}"],
    about: "4-bit weights by hqq in groups of 64 or {group}, or 8-bit weights with a scale for \
            each output channel",
    examples: &["gemlitewo-4-64", "gemlitewo-8"],
    parse: |name| Some(Box::new(Gemlite::parse(name)?)),
};

impl Gemlite {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("gemlitewo-")?;
        let (bits, group) =
            rest.split_once('-').map_or((rest, Some(64)), |(bits, group)| (bits, parse_positive(group)));
        match bits {
            "4" => Some(Self::Int4 { group: group? }),
            "8" => group.map(|_| Self::Int8),
            _ => None,
        }
    }
}

impl Scheme for Gemlite {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let weight = match *self {
            Self::Int4 { group } => {
                Format::hqq(4, Grouping::Block(group), dtype, dtype, ZeroPoint::BeforeScale(Element::Float(dtype)))
            }
            Self::Int8 => {
                let method = QuantMethod::Symmetric { min: -128, max: 127, epsilon: 1e-5 };
                Format::symmetric(8, Grouping::Row, dtype, dtype).with_method(method)
            }
        };
        Ok(QuantConfig::weight_only(dtype, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_defaults_to_64_and_is_ignored_by_int8() {
        assert_eq!(Gemlite::parse("gemlitewo-4"), Gemlite::parse("gemlitewo-4-64"));
        assert_eq!(Gemlite::parse("gemlitewo-8-128"), Some(Gemlite::Int8));
        assert_eq!(Gemlite::parse("gemlitewo-8-0"), None);
    }
}
