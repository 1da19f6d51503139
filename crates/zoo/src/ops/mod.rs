//! Operators, one file for each family, and the sizes they are run at.

pub mod add_ln;
pub mod attention_4d;
pub mod blas;
pub mod collective;
pub mod conv2d;
pub mod cross_entropy;
pub mod elementwise;
pub mod elsewhere;
pub mod flat_attention;
pub mod fusion_counts;
pub mod gemm;
pub mod gemm_quantised;
pub mod hbm_copy;
pub mod head_attention;
pub mod inference;
pub mod layer_norm;
pub mod linear_bias;
pub mod ln_gelu;
pub mod ln_linear;
pub mod mse_loss;
pub mod presets;
pub mod quantization;
pub mod rms_norm;
pub mod rms_norm_pass;
pub mod softmax;
pub mod stream;
mod stream_host;
pub mod swiglu;
pub mod swiglu_mlp;
pub mod swiglu_pass;
pub mod transfer;

mod absmax;
mod attention_core;
#[cfg(feature = "cuda")]
mod collective_native;
#[cfg(any(feature = "cuda", feature = "wgpu"))]
mod cubed;
mod loss;
mod minifloat;
#[cfg(feature = "cuda")]
mod native_pass;
mod number_types;
mod product;
mod rows;
#[cfg(feature = "cuda")]
mod transfer_native;
