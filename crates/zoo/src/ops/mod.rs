//! Operators: one file for each family.

pub mod attention_4d;
pub mod conv2d;
pub mod flat_attention;
pub mod fusion_counts;
pub mod layer_norm;
pub mod linear_bias;
pub mod stream;

mod attention_core;
