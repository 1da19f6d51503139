//! What can go wrong with a workload.

use calorimeter_case::{Axes, UnknownName};
use calorimeter_recipes::RecipeError;

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ZooError {
    /// No model, device or implementation has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// The combination cannot be run; the text says what would make it run.
    #[error("{0}")]
    Unsupported(String),
    /// Sizes that an operator cannot have.
    #[error("{0}")]
    Shape(String),
    /// A weight cannot be quantized.
    #[error(transparent)]
    Weight(RecipeError),
    /// The device or a library under it reported an error.
    #[error("{0}")]
    Device(String),
}

impl ZooError {
    /// What is larger than can be counted.
    pub(crate) fn more_than_any_machine(what: &str, axes: &Axes) -> Self {
        Self::Unsupported(format!("{what} at {axes} is more than any machine computes; make it smaller"))
    }
}

impl From<RecipeError> for ZooError {
    fn from(error: RecipeError) -> Self {
        match error {
            RecipeError::NotFinite { .. } => Self::Weight(error),
            other => Self::Unsupported(other.to_string()),
        }
    }
}
