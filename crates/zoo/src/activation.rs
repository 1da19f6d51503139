//! What the activations that models end with compute: on a device, and exactly.

use burn::tensor::{Tensor, activation, backend::Backend};
use calorimeter_case::Activation;

/// The value of a function of one number.
pub trait Activate {
    /// Applies it on a device.
    fn apply<B: Backend, const D: usize>(self, x: Tensor<B, D>) -> Tensor<B, D>;

    /// Its value in double precision.
    fn exact(self, x: f64) -> f64;
}

impl Activate for Activation {
    fn apply<B: Backend, const D: usize>(self, x: Tensor<B, D>) -> Tensor<B, D> {
        match self {
            Self::Relu => activation::relu(x),
            Self::Sigmoid => activation::sigmoid(x),
            Self::LeakyRelu => activation::leaky_relu(x, 0.01),
            Self::Relu6 => x.clamp(0.0, 6.0),
            Self::Gelu => activation::gelu(x),
            Self::Silu => activation::silu(x),
            Self::HardSwish => activation::hard_swish(x),
        }
    }

    fn exact(self, x: f64) -> f64 {
        match self {
            Self::Relu => x.max(0.0),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::LeakyRelu => {
                if x < 0.0 {
                    0.01 * x
                } else {
                    x
                }
            }
            Self::Relu6 => x.clamp(0.0, 6.0),
            Self::Gelu => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
            Self::Silu => x / (1.0 + (-x).exp()),
            Self::HardSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        }
    }
}
