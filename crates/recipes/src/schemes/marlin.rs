//! `marlin` with semi-structured sparsity: 4-bit weights in groups of 128 along K, two of every four of them zero.
//!
//! Symmetric: the scale is amax / 7.5, at least 1e-6, each step rounded to the dtype of the weight. torchao stores
//! values 0..=15 with 8 for zero; here they are -8..=7. The layer multiplies dequantized values.

use crate::format::{Format, Grouping, QuantMethod};
use crate::{Dtype, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// Sparse Marlin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Marlin;

impl fmt::Display for Marlin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("marlin")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["marlin"],
    about: "4-bit weights in groups of 128 along K; runs with semi-structured sparsity only",
    examples: &["marlin"],
    parse: |name| Some(Box::new(Marlin::parse(name)?)),
};

impl Marlin {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "marlin").then_some(Self)
    }
}

impl Scheme for Marlin {
    fn supports_semi_structured(&self) -> bool {
        true
    }

    fn quant_config(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        if sparsity != Some(Sparsity::SemiStructured) {
            return Err(RecipeError::Unsupported(
                "recipe marlin is for weights of which two of every four are zero; \
                 with semi-sparse in sparsity_config_recipe_names it runs"
                    .into(),
            ));
        }
        let method = QuantMethod::Symmetric { min: -8, max: 7, epsilon: 1e-6 };
        let weight = Format::symmetric(4, Grouping::Block(128), dtype, dtype).with_method(method);
        Ok(QuantConfig::weight_only(dtype, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marlin_requires_semi_structured_sparsity() {
        assert!(matches!(Marlin.quant_config(Dtype::F16, None), Err(RecipeError::Unsupported(_))));
        assert!(Marlin.quant_config(Dtype::F16, Some(Sparsity::SemiStructured)).is_ok());
    }
}
