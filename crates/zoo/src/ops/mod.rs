//! Operators: one file for each family.

pub mod gemm;
pub mod gemm_quantised;
pub mod layer_norm;
pub mod quantization;
pub mod stream;

mod absmax;
mod minifloat;
mod number_types;
mod product;
