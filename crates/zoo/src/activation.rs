//! Activation functions of models, on a device and on the host.

use burn::tensor::{Tensor, activation, backend::Backend};
use calorimeter_case::Activation;

/// Evaluation of an elementwise function.
pub trait Activate {
    /// Applies the function to a tensor on its device.
    fn apply<B: Backend, const D: usize>(self, x: Tensor<B, D>) -> Tensor<B, D>;

    /// Returns the value in single precision; NaN for NaN.
    fn eval_f32(self, x: f32) -> f32;

    /// Returns the value in double precision.
    fn eval_f64(self, x: f64) -> f64;
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

    fn eval_f32(self, x: f32) -> f32 {
        match self {
            Self::Relu if x < 0.0 => 0.0,
            Self::Relu => x,
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::LeakyRelu if x < 0.0 => 0.01 * x,
            Self::LeakyRelu => x,
            Self::Relu6 => x.clamp(0.0, 6.0),
            Self::Gelu => 0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2)),
            Self::Silu => x / (1.0 + (-x).exp()),
            Self::HardSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        }
    }

    fn eval_f64(self, x: f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f32_is_close_to_f64_and_propagates_nan() {
        for activation in Activation::ALL {
            for x in (-80..=80).map(|step| step as f32 / 8.0) {
                let (got, exact) = (f64::from(activation.eval_f32(x)), activation.eval_f64(f64::from(x)));
                assert!((got - exact).abs() <= 1e-6 * exact.abs().max(1.0), "{activation:?} of {x}: {got} for {exact}");
            }
            assert!(activation.eval_f32(f32::NAN).is_nan(), "{activation:?}");
        }
    }
}
