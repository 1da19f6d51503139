//! Operators, one folder per family: `mod.rs` defines signature and cost, `reference.rs` the double-precision
//! reference, the other files one implementation each.

pub mod activation;
pub mod add_ln;
pub mod attention;
pub mod blas;
pub mod collective;
pub mod conv2d;
pub mod cross_entropy;
pub mod elementwise;
pub mod flax_rms_norm;
pub mod gemm;
pub mod gemm_quantized;
pub mod halved_swiglu;
pub mod hbm_copy;
pub mod layer_norm;
pub mod linear_bias;
pub mod ln_gelu;
pub mod ln_linear;
pub mod mse_loss;
pub mod presets;
pub mod quantization;
pub mod rms_norm;
pub mod softmax;
pub mod stream;
pub mod swiglu;
pub mod swiglu_mlp;
pub mod trained_linear;
pub mod trained_model;
pub mod transfer;

mod amax_scaling;
mod dtypes;
mod e4m3;
mod loss;
mod matmul;
#[cfg(feature = "native")]
mod native_plans;
mod sequences;
mod traffic;

use crate::registry::table::Zoo;

/// Registers all operators in the order in which they are listed.
pub(crate) fn register(zoo: &Zoo) {
    layer_norm::register(zoo);
    rms_norm::register(zoo);
    activation::register(zoo);
    softmax::register(zoo);
    mse_loss::register(zoo);
    cross_entropy::register(zoo);
    ln_gelu::register(zoo);
    add_ln::register(zoo);
    swiglu::register(zoo);
    stream::register(zoo);
    linear_bias::register(zoo);
    conv2d::register(zoo);
    attention::register_patterns(zoo);
    gemm::register(zoo);
    gemm_quantized::register(zoo);
    quantization::register(zoo);
    elementwise::register(zoo);
    halved_swiglu::register(zoo);
    flax_rms_norm::register(zoo);
    attention::register_llm_variants(zoo);
    hbm_copy::register(zoo);
    transfer::register(zoo);
    collective::register(zoo);
    ln_linear::register(zoo);
    swiglu_mlp::register(zoo);
    blas::register(zoo);
    trained_linear::register(zoo);
    trained_model::register(zoo);
}
