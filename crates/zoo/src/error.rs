//! Errors of workloads.

use calorimeter_case::{Axes, UnknownName};
use calorimeter_recipes::RecipeError;

/// Error of a workload.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ZooError {
    /// Unknown name of a model, operator, device or implementation.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// Unsupported combination; the text names an alternative.
    #[error("{0}")]
    Unsupported(String),
    /// Invalid sizes of an operator.
    #[error("{0}")]
    Shape(String),
    /// Weight that cannot be quantized.
    #[error(transparent)]
    Weight(RecipeError),
    /// Error of the device or of a library.
    #[error("{0}")]
    Device(String),
}

impl ZooError {
    /// Error for sizes at which FLOPs or bytes could overflow.
    pub(crate) fn too_large(what: &str, axes: &Axes) -> Self {
        Self::Unsupported(format!("{what} at {axes} is too large; reduce its sizes"))
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
