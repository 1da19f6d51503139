//! `gemlitewo-4[-{group}]` and `gemlitewo-8[-{group}]`: weight formats of gemlite, unquantized activations.
//!
//! 4 bits: half-quadratic quantization in groups of 64 by default; the zero point is subtracted before scaling: value =
//! (q - zero) * scale. 8 bits: symmetric over -128..=127, one scale per output channel, at least 1e-5; the group is
//! parsed and ignored, as in torchao. Scales and zero points are in the dtype of the weight. The layer multiplies
//! dequantized values; gemlite's own kernels may compute differently.

use crate::format::{Format, Grouping, Method, Zero};
use crate::names::number;
use crate::{Dtype, Element, Family, RecipeError, Scheme, Sparsity, Treatment};
use std::fmt;

/// Gemlite weight-only quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Gemlite {
    /// 4-bit weights.
    Four {
        /// Values that share a scale.
        group: u32,
    },
    /// 8-bit weights.
    Eight,
}

impl fmt::Display for Gemlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Four { group } => f.pad(&format!("gemlitewo-4-{group}")),
            Self::Eight => f.pad("gemlitewo-8"),
        }
    }
}

/// Registration of the recipes.
pub static FAMILY: Family = Family {
    spellings: &["gemlitewo-{4|8}", "gemlitewo-{4|8}-{group}"],
    about: "4-bit weights by hqq in groups of 64 or {group}, or 8-bit weights with a scale for \
            each output channel",
    typical: &["gemlitewo-4-64", "gemlitewo-8"],
    parse: |name| Some(Box::new(Gemlite::parse(name)?)),
};

impl Gemlite {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("gemlitewo-")?;
        let (bits, group) = rest.split_once('-').map_or((rest, Some(64)), |(bits, group)| (bits, number(group)));
        match bits {
            "4" => Some(Self::Four { group: group? }),
            "8" => group.map(|_| Self::Eight),
            _ => None,
        }
    }
}

impl Scheme for Gemlite {
    fn treatment(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        let weight = match *self {
            Self::Four { group } => {
                Format::hqq(4, Grouping::Block(group), dtype, dtype, Zero::InSteps(Element::Float(dtype)))
            }
            Self::Eight => {
                let method = Method::Symmetric { least: -128, most: 127, epsilon: 1e-5 };
                Format::symmetric(8, Grouping::Row, dtype, dtype).with_method(method)
            }
        };
        Ok(Treatment::weight_only(dtype, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_has_a_default_and_means_nothing_in_8_bits() {
        assert_eq!(Gemlite::parse("gemlitewo-4"), Gemlite::parse("gemlitewo-4-64"));
        assert_eq!(Gemlite::parse("gemlitewo-8-128"), Some(Gemlite::Eight));
        assert_eq!(Gemlite::parse("gemlitewo-8-0"), None);
    }
}
