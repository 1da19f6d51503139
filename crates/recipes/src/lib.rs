#![doc = include_str!("../README.md")]

// CubeCL macros and doctests refer to the crate by its external name.
extern crate self as calorimeter_recipes;

#[cfg_attr(feature = "cube", allow(missing_docs, reason = "CubeCL adds an undocumented twin to each function"))]
pub mod scalar;

pub mod device;
pub mod module;
pub mod packed_tensor;
pub mod packing;
pub mod quantize;
pub mod schemes;
pub mod training;

mod accuracy;
mod block_sparse;
mod dispatch;
mod dtype;
mod element;
mod error;
#[cfg(feature = "cube")]
mod gemm_support;
mod ggml;
mod hqq;
mod layer;
mod linear;
mod min_max;
mod pairing;
mod prune;
mod qqq;
mod quant_config;
mod quantized_tensor;
mod quantizer;
mod recipe;
mod registry;
mod scheme;
mod weight;

// Tensors and backends appear in public signatures.
pub use ::burn;
pub use accuracy::{ErrorMetrics, sqnr};
pub use calorimeter_case::{
    Dtype, Element, Format, LayerSpec, MatmulMode, Name, PackedTensor, PrecisionHint, Sparsity, UnknownName, format,
};
pub use dtype::FloatType;
pub use element::ElementCodec;
pub use error::RecipeError;
pub use linear::Linear;
pub use module::{QuantLinear, convert_to_float8_training, quantize};
pub use pairing::{RecipeVariant, pair};
pub use prune::prune;
pub use quant_config::{PreparedWeight, QuantConfig};
pub use quantized_tensor::QuantizedTensor;
pub use quantizer::Quantizer;
pub use recipe::{Recipe, RecipeInfo};
pub use scheme::{RecipeFamily, Scheme};
pub use training::{Float8Training, TrainingRecipe};
pub use weight::Weight;
