//! Scalar arithmetic of quantization, shared by host and device like [`calorimeter_kernels::scalar`].

pub mod ggml;
pub mod hqq;
pub mod power;
pub mod qqq;
pub mod rules;

pub use calorimeter_kernels::scalar::{minifloat, rounding};
