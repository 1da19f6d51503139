//! Operators: one file for each family.

pub mod layer_norm;
pub mod stream;

mod rows;
