//! Interface of quantization schemes, and recipe families that parse their names.

use crate::{Dtype, QuantConfig, RecipeError, Sparsity, TrainingRecipe};
use std::any::Any;
use std::fmt::{Debug, Display};

/// Quantization scheme of a recipe; displayed as the name of the recipe.
pub trait Scheme: Any + Debug + Display + Send + Sync {
    /// True if the kernels of the scheme support weights with 2:4 sparsity.
    fn supports_semi_structured(&self) -> bool {
        false
    }

    /// Returns the configuration of the linear layers of a model in `dtype`; the error says what is supported.
    fn quant_config(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<QuantConfig, RecipeError>;

    /// Returns the float8 training recipe, `None` for training in the dtype of the model. The error lists the recipes
    /// that train.
    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        Err(RecipeError::Unsupported(
            "does not support training; use baseline, tensorwise, rowwise, rowwise_with_gw_hp, float8dq-tensor, float8dq-row \
             or mxfp8"
                .into(),
        ))
    }
}

/// Family of recipes that differ in parameters. Other crates register theirs with
/// [`Recipe::register`](crate::Recipe::register).
#[derive(Debug, Clone, Copy)]
pub struct RecipeFamily {
    /// Names or patterns of names: `{a|b}` is one of the alternatives, `[a|b]` an alternative or nothing, `{group}` a
    /// number. The parser may accept further names that are not listed.
    pub spellings: &'static [&'static str],
    /// Single-line description.
    pub about: &'static str,
    /// Example names for an overview.
    pub examples: &'static [&'static str],
    /// Parses a name exactly, never by substring.
    pub parse: fn(&str) -> Option<Box<dyn Scheme>>,
}
