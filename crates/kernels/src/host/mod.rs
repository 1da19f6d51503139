//! CPU kernels on rayon's thread pool: GEMMs with float and quantized weights, and row-wise operators.
//!
//! The instruction set is detected when a GEMM is created. Kernels are written against a portable sixteen-wide SIMD
//! interface; each instruction set is one file. Every output is accumulated by one thread, in an order that does not
//! depend on the number of threads.

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "intrinsics behind a runtime check of the processor")]
mod avx2;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "intrinsics behind a runtime check of the processor")]
mod avx512;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "intrinsics behind a runtime check of the processor")]
mod avx512_vnni;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "intrinsics behind a runtime check of the processor")]
mod avx_vnni;
mod dot_products;
mod float_gemm;
mod float_isa;
mod float_simd;
mod float_vec;
mod int8_gemm;
mod int8_isa;
mod int8_simd;
mod layer;
mod layers;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code, reason = "intrinsics behind a runtime check of the processor")]
mod neon;
#[cfg(target_arch = "aarch64")]
#[allow(unsafe_code, reason = "intrinsics behind a runtime check of the processor")]
mod neon_dot;
mod partition;
mod portable;
#[allow(unsafe_code, reason = "an instruction that every x86-64 processor has")]
mod prefetch;
mod rows;
mod tiles;
mod weights;

pub use float_gemm::FloatGemm;
pub use float_vec::FloatVec;
pub use int8_gemm::Int8Gemm;
pub use layer::{Cpu, HostLayer, HostLayerContext, HostWeight, QuantizedRows};
pub use layers::{LAYER_KERNELS, prepare_layer};
pub use partition::run_parallel;
pub use rows::{RowwiseOperator, layer_norm};
pub use weights::{BlockWeight, HostGemmWeight, Int4Weight, Int8Weight};
