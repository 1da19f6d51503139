//! CUDA: cuBLASLt, and our own CUDA C++ compiled by NVRTC.
//!
//! A [`Machine`] is one GPU with one stream; everything made from it runs on that stream in the order it was enqueued.
//! Plans ([`Linear`], [`PackedLinear`], [`LayerNorm`], [`Quantise`] and the like) choose and compile when they are made, so that
//! `enqueue` only launches. A plan and the buffers it is given must come from the same machine; this is checked at each launch.

mod activation;
mod buffer;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt;
#[allow(unsafe_code, reason = "the bindings of cuBLASLt")]
mod cublaslt_handle;
#[allow(unsafe_code, reason = "the bindings of the CUDA driver")]
mod driver;
mod elementwise;
mod error;
mod float8_form;
mod float8_linear;
mod form;
mod gpu;
#[allow(unsafe_code, reason = "launching a kernel")]
mod kernel;
mod layer_norm;
#[allow(unsafe_code, reason = "loading a library runs its initialisers")]
mod libraries;
mod linear;
mod linear_form;
mod machine;
#[allow(unsafe_code, reason = "the bindings of NVRTC")]
mod nvrtc;
mod packed_form;
mod packed_linear;
mod packed_product;
mod probe_kernel;
mod quantise;
mod quantise_columns;
mod quantise_rows;
mod row_cut;
mod scale_after;
mod sizes;
#[allow(unsafe_code, reason = "the bindings of NCCL")]
mod team;
#[allow(unsafe_code, reason = "memory that a device copies from and to")]
mod transfers;
mod transpose_bytes;
mod unpack_weight;

pub use activation::Activation;
pub use buffer::Buffer;
pub use driver::probe;
pub use elementwise::{Elementwise, ElementwiseFunction};
pub use error::NativeError;
pub use float8_form::{Float8Output, Float8Sums};
pub use float8_linear::Float8Linear;
pub use gpu::{ComputeCapability, DriverVersion, GpuInfo};
pub use layer_norm::LayerNorm;
pub use libraries::{LibraryStatus, libraries};
pub use linear::Linear;
pub use linear_form::{Epilogue, LinearForm, LinearShape, WeightLayout};
pub use machine::Machine;
pub use packed_form::PackedWeight;
pub use packed_linear::PackedLinear;
pub(crate) use probe_kernel::ProbeKernel;
pub use quantise::{Quantise, ScaleSource};
pub use team::{Collective, Team};
pub use transfers::{HostKind, HostMemory, Transfers};
pub use transpose_bytes::TransposeBytes;
