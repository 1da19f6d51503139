//! Errors of recipes.

use crate::module::LayerReport;
use burn::tensor::DType;
use calorimeter_case::{Name, UnknownName};

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
    /// The group size of a format does not fit the weight.
    #[error("invalid group size {group}: expected {expected}")]
    GroupSize {
        /// Group size.
        group: u32,
        /// Supported group sizes, with the reason.
        expected: String,
    },
    /// The dtype of a weight is not supported.
    #[error("invalid dtype {found:?} of the weight: expected one of {supported:?}; cast the layer")]
    WeightDtype {
        /// Dtype of the weight.
        found: DType,
        /// Supported dtypes.
        supported: Vec<DType>,
    },
    /// The weight of a layer is quantized already.
    #[error("the layer is already quantized with {recipe}; exclude it with the filter")]
    AlreadyQuantized {
        /// Recipe of the weight.
        recipe: Name,
    },
    /// No layer of a module was converted.
    #[error("{}", describe_unconverted(.layers))]
    NothingConverted {
        /// Layers of the module.
        layers: Vec<LayerReport>,
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

fn describe_unconverted(layers: &[LayerReport]) -> String {
    if layers.is_empty() {
        return "the module has no linear layer; declare layers to convert as QuantLinear".to_owned();
    }
    let layers: Vec<_> = layers.iter().map(|layer| format!("{} {}", layer.path, layer.outcome)).collect();
    format!("no layer was converted: {}", layers.join(", "))
}
