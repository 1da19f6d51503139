//! Derivatives of activations: on tensors and in double precision.

use crate::{Activate, Activation};
use burn::tensor::{Tensor, activation::sigmoid, backend::Backend};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Applies an activation whose autodiff gradient is correct. burn's GELU has the gradient of the tanh approximation.
pub(super) fn activate<B: Backend>(activation: Activation, x: Tensor<B, 2>) -> Tensor<B, 2> {
    match activation {
        Activation::Gelu => x.clone() * normal_cdf(x),
        other => other.apply(x),
    }
}

/// Gradient of the input of an activation, given the gradient of its output.
pub(super) fn backward<B: Backend>(activation: Activation, x: Tensor<B, 2>, gradient: Tensor<B, 2>) -> Tensor<B, 2> {
    match activation {
        Activation::Relu => gradient.mask_fill(x.lower_equal_elem(0.0), 0.0),
        Activation::Sigmoid => {
            let y = sigmoid(x);
            gradient * y.clone() * (-y + 1.0)
        }
        Activation::LeakyRelu => {
            let below = gradient.clone() * 0.01;
            gradient.mask_where(x.lower_elem(0.0), below)
        }
        Activation::Relu6 => {
            let flat = x.clone().lower_equal_elem(0.0).bool_or(x.greater_equal_elem(6.0));
            gradient.mask_fill(flat, 0.0)
        }
        Activation::Gelu => {
            let density = (x.clone().powi_scalar(2) * -0.5).exp() * (2.0 * PI).sqrt().recip();
            gradient * (normal_cdf(x.clone()) + x * density)
        }
        Activation::Silu => {
            let y = sigmoid(x.clone());
            gradient * (y.clone() * (x * (-y + 1.0) + 1.0))
        }
        Activation::HardSwish => {
            let inside = x.clone() * (1.0 / 3.0) + 0.5;
            let slope = inside.mask_fill(x.clone().lower_equal_elem(-3.0), 0.0);
            gradient * slope.mask_fill(x.greater_equal_elem(3.0), 1.0)
        }
    }
}

/// Cumulative distribution function of the standard normal distribution.
fn normal_cdf<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    (((x * FRAC_1_SQRT_2).erf()) + 1.0) * 0.5
}

/// Derivative at x in double precision.
pub(super) fn derivative_f64(activation: Activation, x: f64) -> f64 {
    let inside = |from: f64, to: f64| if x > from && x < to { 1.0 } else { 0.0 };
    match activation {
        Activation::Relu => inside(0.0, f64::INFINITY),
        Activation::Sigmoid => {
            let y = Activation::Sigmoid.eval_f64(x);
            y * (1.0 - y)
        }
        Activation::LeakyRelu => 0.01 + 0.99 * inside(0.0, f64::INFINITY),
        Activation::Relu6 => inside(0.0, 6.0),
        Activation::Gelu => {
            let cdf = 0.5 * (1.0 + libm::erf(x * FRAC_1_SQRT_2));
            cdf + x * (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
        }
        Activation::Silu => {
            let y = Activation::Sigmoid.eval_f64(x);
            y * (1.0 + x * (1.0 - y))
        }
        Activation::HardSwish if x >= 3.0 => 1.0,
        Activation::HardSwish => (2.0 * x + 3.0) / 6.0 * inside(-3.0, 3.0),
    }
}

/// True if the derivative is discontinuous somewhere.
pub(super) fn has_kinks(activation: Activation) -> bool {
    match activation {
        Activation::Relu | Activation::LeakyRelu | Activation::Relu6 | Activation::HardSwish => true,
        Activation::Sigmoid | Activation::Gelu | Activation::Silu => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_match_finite_differences() {
        const STEP: f64 = 1e-5;
        for activation in Activation::ALL {
            // Samples avoid the kinks at -3, 0, 3 and 6.
            for x in (-40..=40).map(|step| f64::from(step) / 5.0 + 0.01) {
                let difference = (activation.eval_f64(x + STEP) - activation.eval_f64(x - STEP)) / (2.0 * STEP);
                let slope = derivative_f64(activation, x);
                assert!(
                    (difference - slope).abs() < 1e-8,
                    "{activation:?} at {x}: {slope}, finite difference {difference}"
                );
            }
        }
    }
}
