//! What a recipe must be able to do, and how it is found by its name.

use crate::{Dtype, RecipeError, Sparsity, TrainingRecipe, Treatment};
use std::any::Any;
use std::fmt::{Debug, Display};

/// The arithmetic behind one recipe; it is displayed as the recipe's name.
pub trait Scheme: Any + Debug + Display + Send + Sync {
    /// Whether its kernels know weights of which two of every four are zero.
    fn takes_semi_structured(&self) -> bool {
        false
    }

    /// What it does to the linear layers of a model in `dtype`, pruned or not; the error says what would make it run.
    fn treatment(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<Treatment, RecipeError>;

    /// How layers are trained under it; the error says what would train.
    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        Err(RecipeError::Unsupported(
            "it is for models that were trained before; baseline, tensorwise, rowwise, rowwise_with_gw_hp, float8dq-tensor, \
             float8dq-row and mxfp8 train"
                .into(),
        ))
    }
}

/// One recipe, or recipes that differ in parameters, by their names. A crate that has one of its own registers it with
/// [`Recipe::register`](crate::Recipe::register).
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Every name, or the patterns of the names: `{a|b}` stands for one of these, `[a|b]` for one of these or nothing,
    /// `{group}` for a number. Other names may be read, but are not listed.
    pub spellings: &'static [&'static str],
    /// What it does, in one line.
    pub about: &'static str,
    /// The names that stand for it in an overview.
    pub typical: &'static [&'static str],
    /// Reads a name, exactly and never by substring.
    pub parse: fn(&str) -> Option<Box<dyn Scheme>>,
}
