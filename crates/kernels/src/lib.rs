#![doc = include_str!("../README.md")]
//! A matrix product on an NVIDIA GPU:
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

mod adamw;
#[cfg(feature = "cube")]
pub mod cube;
mod dynamic;
pub mod host;
#[cfg(feature = "cuda")]
pub mod native;
mod packed;
pub mod probes;
pub mod rowwise;
mod sparse;

// Types of these are in signatures.
#[cfg(feature = "cube")]
pub use ::cubecl;
#[cfg(feature = "cuda")]
pub use ::cudarc;
pub use adamw::Adamw;
pub use calorimeter_case::{Activation, Dtype, Element};
pub use dynamic::{DynamicCodes, DynamicForm, Float8Sums, Prologue, SharedScale};
pub use packed::{CodeZero, InputNumbers, PackedForm, WeightCodes};
pub use sparse::{KeptCodes, SparseForm};
