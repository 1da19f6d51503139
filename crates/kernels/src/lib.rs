#![doc = include_str!("../README.md")]
//! Matrix multiplication on an NVIDIA GPU:
#![cfg_attr(feature = "cuda", doc = "```no_run")]
#![cfg_attr(not(feature = "cuda"), doc = "```ignore")]
//! use calorimeter_kernels::Dtype;
//! use calorimeter_kernels::native::{CudaDevice, LinearPlan, LinearShape, NativeError};
//!
//! fn main() -> Result<(), NativeError> {
//!     let device = CudaDevice::open(0)?;
//!     let linear = LinearPlan::new(&device, Dtype::Bf16, LinearShape { m: 1024, k: 4096, n: 4096 })?;
//!     let x = device.upload(&vec![0; linear.x_bytes()])?;
//!     let w = device.upload(&vec![0; linear.w_bytes()])?;
//!     let mut y = device.allocate(linear.y_bytes())?;
//!
//!     linear.enqueue(&x, &w, &mut y)?;
//!     device.synchronize()?;
//!     println!("{} bytes on {} by {}", y.download()?.len(), device.name(), linear.algorithm());
//!     Ok(())
//! }
//! ```
#![deny(unsafe_code)]

// Lets files move between this crate and other crates without changing their paths.
extern crate self as calorimeter_kernels;

mod adamw;
#[cfg(feature = "cube")]
pub mod cube;
mod float8_accumulation;
pub mod host;
pub mod layer;
#[cfg(feature = "cuda")]
pub mod native;
pub mod probes;
pub mod rowwise;
#[cfg_attr(feature = "cube", allow(missing_docs, reason = "CubeCL adds an undocumented twin to each function"))]
pub mod scalar;

// Re-exported because their types appear in public signatures.
#[cfg(feature = "cube")]
pub use ::cubecl;
#[cfg(feature = "cuda")]
pub use ::cudarc;
pub use adamw::Adamw;
pub use calorimeter_case::{
    Activation, Dtype, Element, Format, LayerSpec, MatmulMode, PackedTensor, PrecisionHint, Prologue, Sparsity, format,
};
pub use float8_accumulation::Float8Accumulation;
pub use layer::{LayerKernel, LinearShape};
