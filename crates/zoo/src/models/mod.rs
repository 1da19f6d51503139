//! One file for each model.

pub mod linear;
pub mod ln_linear;
pub mod transformer_block;
