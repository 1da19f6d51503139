//! `baseline`: the unmodified model.

use crate::{Dtype, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity, TrainingRecipe};
use std::fmt;

/// No quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Baseline;

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("baseline")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["baseline"],
    about: "the unmodified model in its own dtype",
    examples: &["baseline"],
    parse: |name| Some(Box::new(Baseline::parse(name)?)),
};

impl Baseline {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "baseline").then_some(Self)
    }
}

impl Scheme for Baseline {
    fn supports_semi_structured(&self) -> bool {
        true
    }

    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        Ok(QuantConfig::unquantized(dtype))
    }

    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        Ok(None)
    }
}
