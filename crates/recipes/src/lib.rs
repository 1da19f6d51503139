#![doc = include_str!("../README.md")]

// CubeCL macros and doctests refer to the crate by its external name.
extern crate self as calorimeter_recipes;

#[cfg_attr(feature = "cube", allow(missing_docs, reason = "CubeCL adds an undocumented twin to each function"))]
pub mod scalar;

pub mod device;
pub mod format;
pub mod module;
pub mod packing;
pub mod quantize;
pub mod schemes;
pub mod stored;
pub mod training;

mod accuracy;
mod block_sparse;
mod dispatch;
mod dtype;
mod element;
mod error;
mod extremes;
mod hqq;
mod layer;
mod linear;
mod names;
mod pairing;
mod product;
mod prune;
mod qqq;
mod quantized;
mod quantizer;
mod recipe;
mod registry;
mod scheme;
mod shortcut;
mod sparsity;
mod treatment;
mod weight;

// Tensors and backends appear in public signatures.
pub use ::burn;
pub use accuracy::{Accuracy, sqnr};
pub use calorimeter_case::{Dtype, Element, Name, UnknownName};
pub use dtype::FloatType;
pub use element::Codes;
pub use error::RecipeError;
pub use linear::Linear;
pub use module::{QuantLinear, convert_to_float8_training, quantize};
pub use pairing::{Variant, pair};
pub use quantized::Quantized;
pub use quantizer::Quantizer;
pub use recipe::{Recipe, RecipeInfo};
pub use scheme::{Family, Scheme};
pub use shortcut::Shortcut;
pub use sparsity::Sparsity;
pub use training::{Float8Training, TrainingRecipe};
pub use treatment::{Prepared, Products, Treatment};
pub use weight::Weight;
