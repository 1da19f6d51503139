//! The activations that models end with.

use burn::tensor::{Tensor, activation, backend::Backend};

/// An elementwise function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Activation {
    /// max(x, 0).
    Relu,
    /// 1 / (1 + e^-x).
    Sigmoid,
    /// x, or x / 100 below zero.
    LeakyRelu,
    /// x within 0 and 6.
    Relu6,
    /// x Φ(x), with the error function.
    Gelu,
    /// x sigmoid(x).
    Silu,
    /// x relu6(x + 3) / 6.
    HardSwish,
}

impl Activation {
    /// Every activation with its name.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Relu, "relu"),
        (Self::Sigmoid, "sigmoid"),
        (Self::LeakyRelu, "leakyrelu"),
        (Self::Relu6, "relu6"),
        (Self::Gelu, "gelu"),
        (Self::Silu, "silu"),
        (Self::HardSwish, "hardswish"),
    ];

    /// Its name in a model's name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(activation, _)| *activation == self).map_or("", |(_, name)| name)
    }

    /// Applies it on a device.
    pub fn apply<B: Backend, const D: usize>(self, x: Tensor<B, D>) -> Tensor<B, D> {
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

    /// Its value in double precision.
    pub fn exact(self, x: f64) -> f64 {
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
