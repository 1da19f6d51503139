//! Operators: one file for each family.

pub mod gemm;
pub mod layer_norm;
pub mod stream;

mod minifloat;
mod number_types;
mod product;
