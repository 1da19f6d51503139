//! What a recipe must be able to do.

use crate::{Dtype, RecipeError, Sparsity, Treatment};
use std::fmt::{Debug, Display};

/// One recipe, or one family of recipes that differ in parameters. Adding one is a file with an implementation of this
/// trait and one line in the table of [`crate::Recipe`].
pub trait Scheme: Copy + Eq + Debug + Display + Send + Sync + Sized + 'static {
    /// Every name, or the pattern of its names.
    fn spellings() -> Vec<String>;

    /// What it does, in one line.
    const ABOUT: &'static str;

    /// Reads exactly one of its names.
    fn parse(name: &str) -> Option<Self>;

    /// Whether its kernels know weights of which two of every four are zero.
    fn takes_semi_structured(&self) -> bool {
        false
    }

    /// What it does to the linear layers of a model in `dtype`, pruned or not; the error says what would make it run.
    fn treatment(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<Treatment, RecipeError>;
}
