//! Errors of recipes.

use calorimeter_case::UnknownName;

/// Error of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// Unknown name of a recipe, sparsity or dtype.
    #[error(transparent)]
    UnknownName(#[from] UnknownName),
    /// A recipe is registered under a name that another recipe reads.
    #[error("the recipe {name:?} is registered already; choose another name")]
    NameTaken {
        /// Conflicting name.
        name: String,
    },
    /// A recipe is registered under a name that its own parser rejects.
    #[error("invalid recipe name {name:?}: listed by a family whose parser rejects it")]
    UnparsableName {
        /// Rejected name.
        name: String,
    },
    /// Unsupported combination; the text says what is supported.
    #[error("{0}")]
    Unsupported(String),
    /// A group of the weight has no finite scale or zero point.
    #[error(
        "the weight cannot be quantized: group {group} of row {row} holds an infinity or a NaN, \
         or values whose scale or zero point overflows its dtype"
    )]
    NotFinite {
        /// Row, which is an output channel.
        row: usize,
        /// Index of the scale group within the row.
        group: usize,
    },
    /// A layer of a module cannot be quantized.
    #[error("{path}: {cause}")]
    Layer {
        /// Path of the layer in the module.
        path: String,
        /// Underlying error.
        cause: Box<Self>,
    },
}
