//! Quantization of the linear layers of a burn module.
//!
//! The type of a field is fixed, so a layer to be quantized is declared as a [`QuantLinear`]. It is built from a
//! [`burn::nn::Linear`], behaves and is saved like one, and [`quantize`] replaces its weight in place.

mod layer;
mod report;
mod walk;

pub use layer::QuantLinear;
pub use report::{LayerOutcome, LayerReport, ModuleReport};
pub use walk::{convert_to_float8_training, quantize};
