//! Operators: one file for each family.

pub mod attention_4d;
pub mod blas;
pub mod conv2d;
pub mod flat_attention;
pub mod fusion_counts;
pub mod layer_norm;
pub mod linear_bias;
pub mod ln_linear;
pub mod stream;
pub mod swiglu_mlp;

mod attention_core;
mod product;
