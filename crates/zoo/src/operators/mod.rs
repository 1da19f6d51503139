//! Operators, each family a room: what it is and costs, what it computes, and one file for each way to run it.

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
pub mod gemm_quantised;
pub mod halved_swiglu;
pub mod hbm_copy;
pub mod layer_norm;
pub mod linear_bias;
pub mod ln_gelu;
pub mod ln_linear;
pub mod mse_loss;
pub mod not_computed;
pub mod presets;
pub mod quantization;
pub mod rms_norm;
pub mod softmax;
pub mod stream;
pub mod swiglu;
pub mod swiglu_mlp;
pub mod transfer;

mod absmax;
mod loss;
mod minifloat;
#[cfg(feature = "cuda")]
mod native_plans;
mod number_types;
mod product;
mod sequences;
mod traffic;

use crate::registry::table::Zoo;
use activation::ElementwiseActivation;
use attention::Attention;
use blas::Blas;
use collective::Collective;
use conv2d::Conv2d;
use elementwise::Elementwise;
use flax_rms_norm::FlaxRmsNorm;
use gemm::Gemm;
use gemm_quantised::GemmQuantised;
use halved_swiglu::HalvedSwiglu;
use linear_bias::LinearBias;
use quantization::Quantization;
use stream::Stream;
use transfer::Transfer;

/// One line for each family, or for each part of one that runs in the same ways.
pub(crate) fn register(zoo: &Zoo) {
    zoo.operators([layer_norm::LayerNorm]).burn().cube();
    zoo.operators([rms_norm::RmsNorm]).burn().cube();
    zoo.operators(ElementwiseActivation::ALL).burn().cube();
    zoo.operators([softmax::Softmax]).burn().cube();
    zoo.operators([mse_loss::MseLoss]).burn();
    zoo.operators([cross_entropy::CrossEntropy]).burn();
    zoo.operators([ln_gelu::LnGelu]).burn().cube();
    zoo.operators([add_ln::AddLn]).burn().cube();
    zoo.operators([swiglu::Swiglu]).burn().cube();
    zoo.operators(Stream::ALL).burn().native().host_where(Stream::on_the_host);
    zoo.operators(LinearBias::ALL).burn().native();
    zoo.operators([Conv2d::Relu]).burn();
    zoo.operators([Conv2d::Bn, Conv2d::BnRelu]).burn().folds();
    zoo.operators(Attention::PATTERNS).burn();
    zoo.operators(Gemm::ALL).burn().native_where(Gemm::natively);
    zoo.operators(GemmQuantised::OF_LINES).burn().native_where(GemmQuantised::natively);
    zoo.operators(GemmQuantised::OF_BLOCKS).burn();
    zoo.operators(Quantization::ALL).burn().native_where(Quantization::natively);
    zoo.operators(Elementwise::SUMS).burn().cube().native();
    zoo.operators([Elementwise::SiluMul]).burn().cube();
    zoo.operators([Elementwise::Sigmoid]).burn();
    zoo.operators(HalvedSwiglu::ALL).burn();
    zoo.operators([FlaxRmsNorm::Forward]).burn().cube();
    zoo.operators([FlaxRmsNorm::Backward]).burn();
    zoo.operators([FlaxRmsNorm::Inference]).burn().cube();
    zoo.operators(Attention::OF_MODELS).burn();
    zoo.operators([hbm_copy::HbmCopy]).burn().native();
    zoo.operators(Transfer::ALL).native();
    zoo.operators(Collective::ALL).native();
    zoo.operators([ln_linear::LnLinear]).burn();
    zoo.operators([swiglu_mlp::SwigluMlp]).burn();
    zoo.operators([Blas::Dot, Blas::Axpy, Blas::Gemv]).burn();
    zoo.operators([Blas::Matmul]).burn().native();
    zoo.operators([not_computed::NotComputed]);
}
