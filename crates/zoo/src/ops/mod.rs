//! Operators, one file for each family, and the sizes they are run at.

pub mod add_ln;
pub mod cross_entropy;
pub mod elementwise;
pub mod layer_norm;
pub mod ln_gelu;
pub mod mse_loss;
pub mod presets;
pub mod rms_norm;
pub mod softmax;
pub mod stream;
pub mod swiglu;

mod loss;
mod rows;
