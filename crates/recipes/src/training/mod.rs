//! Float8 training of linear layers: each of the three GEMMs of a layer multiplies 8-bit floats, while the weight of
//! the optimizer stays in the dtype of the model.
//!
//! With input x, weight w and gradient g of the output, a layer computes x·w in its forward pass, and g·wᵀ and gᵀ·x in
//! its backward pass. Values that share a scale are consecutive along the reduction dimension, so an operand of two
//! GEMMs is quantized twice, along different dimensions.

#[cfg(feature = "training")]
mod autodiff;
mod backend;
mod backend_impls;
#[cfg(feature = "cube")]
mod cast_gemm;
mod float8;
mod gemms;
mod recipe;

pub use backend::Float8Backend;
pub use float8::{CastStrategy, Float8Training, OperandFormats, TrainingOperand};
pub use gemms::{grad_input, grad_weight, output};
pub use recipe::TrainingRecipe;
