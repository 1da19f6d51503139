//! Operators, one file for each family, and the sizes they are run at.

pub mod add_ln;
pub mod attention_4d;
pub mod conv2d;
pub mod cross_entropy;
pub mod elementwise;
pub mod flat_attention;
pub mod fusion_counts;
pub mod layer_norm;
pub mod linear_bias;
pub mod ln_gelu;
pub mod mse_loss;
pub mod presets;
pub mod rms_norm;
pub mod softmax;
pub mod stream;
pub mod swiglu;

mod attention_core;
mod loss;
mod rows;
