//! Which kernels: GPU code of known quality, for programs that want something better, or better known, than what their
//! framework launches.
//!
//! Without a feature the crate holds only what needs no GPU: small types, the [`probes`] of the processor, and the
//! definition of [`rowwise`] quantisation.
//!
//! ```
//! use calorimeter_kernels::Dtype;
//!
//! let weights = 4096 * 4096 * Dtype::Bf16.bytes();
//! assert_eq!(weights, 32 << 20);
//! assert_eq!(Dtype::Bf16.to_string(), "bf16");
//! ```
//!
//! The feature `cube` adds the probes of any device that CubeCL drives, and the module `cube`: normalisations, softmax
//! and element-wise functions on CubeCL's own memory.
//!
//! The feature `cuda` adds the module `native`, and its probes: matrix products of floats and of e4m3 by cuBLASLt; layer
//! normalisation, activations, quantisation and the operations of STREAM as CUDA C++ compiled by NVRTC for the GPU at
//! hand; all on one stream of its own, whose events a stopwatch can use. It builds on a machine without CUDA; a library or
//! GPU that is missing at run time is an error value.
//!
#![cfg_attr(feature = "cuda", doc = "```no_run")]
#![cfg_attr(not(feature = "cuda"), doc = "```ignore")]
//! use calorimeter_kernels::Dtype;
//! use calorimeter_kernels::native::{Linear, LinearShape, Machine, NativeError};
//!
//! fn main() -> Result<(), NativeError> {
//!     let machine = Machine::open(0)?;
//!     let linear = Linear::new(&machine, Dtype::Bf16, LinearShape { m: 1024, k: 4096, n: 4096 })?;
//!     let x = machine.upload(&vec![0; linear.x_bytes()])?;
//!     let w = machine.upload(&vec![0; linear.w_bytes()])?;
//!     let mut y = machine.allocate(linear.y_bytes())?;
//!
//!     linear.enqueue(&x, &w, &mut y)?;
//!     machine.synchronize()?;
//!     println!("{} bytes on {} by {}", y.download()?.len(), machine.name(), linear.algorithm());
//!     Ok(())
//! }
//! ```
#![deny(unsafe_code)]

#[cfg(feature = "cube")]
pub mod cube;
#[cfg(feature = "cuda")]
pub mod native;
pub mod probes;
pub mod rowwise;

pub use calorimeter_case::Dtype;
