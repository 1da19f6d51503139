//! Operators: one file for each family.

pub mod elsewhere;
pub mod gemm;
pub mod gemm_quantised;
pub mod hbm_copy;
pub mod head_attention;
pub mod inference;
pub mod layer_norm;
pub mod quantization;
pub mod rms_norm_pass;
pub mod stream;
pub mod swiglu_pass;

mod absmax;
mod minifloat;
mod number_types;
mod product;
