//! Training linear layers in float8: each of the three products of a layer multiplies 8-bit floats, while the weight that
//! the optimizer keeps stays in the model's own type.
//!
//! With x the input, w the weight and g the gradient of the output, a layer multiplies x·w in its forward pass, and g·wᵀ
//! and gᵀ·x in its backward pass. The numbers that share a scale lie along what is summed up, so that an operand of two
//! products is quantized twice, each time along another side.

#[cfg(feature = "training")]
mod autodiff;
mod backend;
#[cfg(feature = "cube")]
mod cast_product;
mod devices;
mod float8;
mod products;
mod recipe;

pub use backend::Float8Backend;
pub use float8::{Casting, Float8Training, Operand, Operands};
pub use products::{grad_input, grad_weight, output};
pub use recipe::TrainingRecipe;
