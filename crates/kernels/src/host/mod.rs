//! Kernels of the processor on the threads of rayon's pool: products of floats, and of weights that are stored in codes; and
//! operators of rows.
//!
//! Which instructions are used is found out when a product is made. What is written with them sees sixteen numbers side by
//! side and no instruction; the instructions of each set are a file. Every output is summed up by one thread, in an order
//! that the number of threads has no part in.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, behind a proof that this one does")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, behind a proof that this one does")]
mod avx512;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, behind a proof that this one does")]
mod avx512_vnni;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, behind a proof that this one does")]
mod avx_vnni;
mod byte_set;
mod bytes;
mod cut;
mod dots;
mod float_product;
mod float_set;
mod int8_product;
mod lanes;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, behind a proof that this one does")]
mod neon;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code, reason = "instructions that not every processor has, behind a proof that this one does")]
mod neon_dot;
mod numbers;
mod portable;
mod rows;
mod tiles;
mod weights;

pub use cut::share_out;
pub use float_product::FloatProduct;
pub use int8_product::Int8Product;
pub use numbers::Numbers;
pub use rows::{Rowwise, layer_norm};
pub use weights::{Int4Rows, Int8Rows, Weights};
