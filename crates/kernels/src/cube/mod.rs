//! Portable kernels in CubeCL: normalizations, softmax, element-wise functions of matrices and steps of optimizers
//! on the device.
//!
//! Elements are f32, f16 or bf16, arithmetic is f32, and each kernel passes over memory once, except where a row is too
//! long for the registers of a cube. A function checks what it is given and enqueues; CubeCL reports a launch that fails
//! when the client is next synchronized or read from.
//!
//! An output must not overlap an input. Operands are handles, so any holder of CubeCL memory can call; matrices lie row
//! after row without gaps.

mod across;
mod activation;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod circle;
mod cut;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod elementwise;
mod error;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod layer_norm;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod look;
#[allow(unsafe_code, reason = "memory of a checked length as an argument")]
mod matrix;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod optimizer;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod rms_norm;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod softmax;

pub use activation::SmoothActivation;
pub use circle::is_moved_on;
pub use elementwise::{activate, add, swiglu};
pub use error::CubeError;
pub use layer_norm::{LayerNorm, Residual, layer_norm};
pub use look::{is_finite, sampled};
pub use matrix::Matrix;
pub use optimizer::{Weights, adamw, descent};
pub use rms_norm::rms_norm;
pub use softmax::softmax;
