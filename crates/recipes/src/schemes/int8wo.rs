//! `int8wo`: 8-bit weights, one scale per output channel, unquantized activations.
//!
//! Symmetric over -128..=127: the scale is amax / 127.5 and the positive maximum clamps to 127. Every step is rounded
//! to the dtype of the weight, as in torchao. The layer multiplies integers cast to the dtype of the activation and
//! applies the scale to the rounded result.

use crate::format::{Format, Grouping};
use crate::{Dtype, MatmulMode, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// Int8 weight-only quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Int8WeightOnly;

impl Int8WeightOnly {
    /// Format of the weight.
    pub fn weight_format(dtype: Dtype) -> Format {
        Format::symmetric(8, Grouping::Row, dtype, dtype)
    }
}

impl fmt::Display for Int8WeightOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("int8wo")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["int8wo"],
    about: "8-bit weights, one scale per output channel; unquantized activations",
    examples: &["int8wo"],
    parse: |name| Some(Box::new(Int8WeightOnly::parse(name)?)),
};

impl Int8WeightOnly {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        // `int8_rowwise_weight_only` is the alias from torchao's accuracy tables.
        ["int8wo", "int8_rowwise_weight_only"].contains(&name).then_some(Self)
    }
}

impl Scheme for Int8WeightOnly {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let products = MatmulMode::QuantizedValues(dtype);
        Ok(QuantConfig { matmul: products, ..QuantConfig::weight_only(dtype, Self::weight_format(dtype)) })
    }
}
