//! Combinations of recipes and sparsities.

use crate::{Dtype, QuantConfig, Recipe, RecipeError, Sparsity};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;

/// Recipe with an optional sparsity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecipeVariant {
    /// Quantization of weights and inputs.
    pub recipe: Recipe,
    /// Pruning of weights before they are quantized.
    pub sparsity: Option<Sparsity>,
}

impl RecipeVariant {
    /// Baseline of all speed-ups.
    pub const BASELINE: Self = Self { recipe: Recipe::BASELINE, sparsity: None };

    /// See [`Recipe::quant_config`].
    pub fn quant_config(&self, dtype: Dtype) -> Result<QuantConfig, RecipeError> {
        self.recipe.quant_config(dtype, self.sparsity)
    }

    /// Returns the configuration of a layer that is trained; see [`Recipe::training`].
    pub fn training_config(&self, dtype: Dtype) -> Result<QuantConfig, RecipeError> {
        match self.sparsity {
            Some(sparsity) => Err(RecipeError::Unsupported(format!("{sparsity}: training does not support sparsity"))),
            None => Ok(QuantConfig { training: self.recipe.training()?, ..QuantConfig::unquantized(dtype) }),
        }
    }
}

impl From<Recipe> for RecipeVariant {
    fn from(recipe: Recipe) -> Self {
        Self { recipe, sparsity: None }
    }
}

impl fmt::Display for RecipeVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sparsity {
            None => self.recipe.fmt(f),
            Some(sparsity) => write!(f, "{}+{sparsity}", self.recipe),
        }
    }
}

/// Pairs every recipe with no sparsity, semi-structured sparsity with the recipes that support it, and block sparsity
/// with the baseline.
pub fn pair(recipes: &[Recipe], sparsities: &[Sparsity]) -> Vec<RecipeVariant> {
    let (mut pairs, mut unique) = (Vec::new(), HashSet::new());
    let mut push = |recipe, sparsity| {
        let variant = RecipeVariant { recipe, sparsity };
        if unique.insert(variant) {
            pairs.push(variant);
        }
    };
    let semi_structured = sparsities.contains(&Sparsity::SemiStructured);
    for &recipe in recipes {
        push(recipe, None);
        if semi_structured && recipe.supports_semi_structured() {
            push(recipe, Some(Sparsity::SemiStructured));
        }
    }
    for &sparsity in sparsities {
        if matches!(sparsity, Sparsity::Block { .. }) {
            push(Recipe::BASELINE, Some(sparsity));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paired(recipes: &[&str], sparsities: &[&str]) -> Vec<String> {
        let recipes: Vec<Recipe> = recipes.iter().map(|r| r.parse().unwrap()).collect();
        let sparsities: Vec<Sparsity> = sparsities.iter().map(|s| s.parse().unwrap()).collect();
        pair(&recipes, &sparsities).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn pairs_keep_the_listed_order() {
        for (recipes, sparsities, expected) in [
            (&["int8wo"][..], &["semi-sparse", "block"][..], &["int8wo", "baseline+block-0.9-64"][..]),
            (&["baseline", "int8wo"], &["semi-sparse"], &["baseline", "baseline+semi-sparse", "int8wo"]),
            (&["marlin", "baseline"], &["2:4"], &["marlin", "marlin+semi-sparse", "baseline", "baseline+semi-sparse"]),
            (&["int8dq", "float8dq-row"], &["block"], &["int8dq", "float8dq-row", "baseline+block-0.9-64"]),
            (&["float8dq", "fp6"], &["2:4"], &["float8dq-tensor", "float8dq-tensor+semi-sparse", "fp6"]),
            (&["int8wo", "int8wo"], &[], &["int8wo"]),
        ] {
            assert_eq!(paired(recipes, sparsities), expected);
        }
    }

    #[test]
    fn none_is_an_unknown_sparsity() {
        assert!("None".parse::<Sparsity>().is_err());
    }
}
