//! Portable kernels in CubeCL: linear layers with packed weights, normalizations, softmax, element-wise functions and
//! optimizer steps.
//!
//! Elements are f32, f16 or bf16, and arithmetic is f32. Each kernel passes over memory once, unless a row exceeds the
//! registers of a cube. A function checks its arguments and enqueues; CubeCL reports a failed launch when the client is
//! next synchronized or read from.
//!
//! Outputs must not overlap inputs. Operands are handles, so any owner of CubeCL memory can call these functions.
//! Matrices are row-major without gaps between rows.

mod activation;
mod capability;
#[allow(
    missing_docs,
    clippy::collapsible_if,
    reason = "CubeCL adds an undocumented twin to each function; compile-time conditions need nesting"
)]
pub mod decode;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod elementwise;
mod error;
mod gemm;
#[allow(unsafe_code, reason = "kernel arguments of checked length")]
mod layer;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod layer_norm;
mod layer_table;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod line_rotation;
#[allow(unsafe_code, reason = "kernel arguments of checked length")]
mod matrix;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod optimizer;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod output_digest;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod rms_norm;
mod row_reduce;
mod row_tile;
#[allow(unsafe_code, reason = "launching unchecked kernels")]
mod softmax;

pub use activation::SmoothActivation;
pub use capability::CubeCapability;
pub use elementwise::{activate, add, swiglu};
pub use error::CubeError;
pub use layer::{Cube, CubeContext, CubeLayerPlan, LayerOperands};
pub use layer_norm::{LayerNormArgs, Residual, layer_norm};
pub use layer_table::layer_kernels;
pub use line_rotation::is_rotated;
pub use matrix::MatrixLayout;
pub use optimizer::{OptimizerState, adamw, sgd};
pub use output_digest::{is_finite, sample};
pub use rms_norm::rms_norm;
pub use softmax::softmax;
