//! `ln_linear_<activation>`: y = act(layer_norm(x) Wᵀ), without gain and biases. x is `[m, k]`, W is `[n, k]`, y is
//! `[m, n]`.

mod burn;
mod host;
#[cfg(feature = "native")]
mod native;

use crate::normalize::layer_norm_exact;
use crate::registry::table::Zoo;
use crate::{Activate, Activation, Definition, ExactLinear, Layout, Matrix, OutputSample};
use calorimeter_shapes::Shape;

/// Layer normalization, linear layer and activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LnLinearModel(
    /// Activation behind the linear layer.
    pub Activation,
);

impl LnLinearModel {
    /// Models for all activations.
    pub fn all() -> [Self; 7] {
        Activation::ALL.map(Self)
    }
}

/// Registers the models with their implementations.
pub(super) fn register(zoo: &Zoo) {
    zoo.models(LnLinearModel::all()).burn().cube().native().host();
}

impl Definition for LnLinearModel {
    fn name(&self) -> &'static str {
        match self.0 {
            Activation::Relu => "ln_linear_relu",
            Activation::Sigmoid => "ln_linear_sigmoid",
            Activation::LeakyRelu => "ln_linear_leakyrelu",
            Activation::Relu6 => "ln_linear_relu6",
            Activation::Gelu => "ln_linear_gelu",
            Activation::Silu => "ln_linear_silu",
            Activation::HardSwish => "ln_linear_hardswish",
        }
    }

    // The name of the activation is case-insensitive; without one it is ReLU.
    fn matches_name(&self, name: &str) -> bool {
        match name.strip_prefix("ln_linear") {
            Some("") => self.0 == Activation::Relu,
            Some(rest) => rest.strip_prefix('_').is_some_and(|word| word.eq_ignore_ascii_case(self.0.name())),
            None => false,
        }
    }

    fn description(&self) -> &'static str {
        "layer norm, linear layer without bias, activation"
    }

    fn layout(&self, shape: Shape) -> Layout {
        let (m, k, n) = (shape.m(), shape.k(), shape.n());
        // Unfused, the normalization holds two f32 copies of the input, and the matmul output exists before the
        // activation.
        Layout { input: (m, k), output: (m, n), linears: vec![(n, k)], intermediate: 4 * m * k + m * n }
    }

    fn flops(&self, shape: Shape) -> u64 {
        2 * shape.m() * shape.k() * shape.n()
    }

    fn roundings(&self) -> u32 {
        2
    }

    fn sample(&self, shape: Shape) -> OutputSample {
        // Checksums do not follow from the inputs behind an activation, so whole rows are sampled.
        OutputSample::for_whole_rows(shape)
    }

    fn reference(&self, _: Shape, input: &Matrix, linears: &[ExactLinear], sample: &OutputSample) -> Vec<f64> {
        let normalized = |row| layer_norm_exact(&input.exact_row(row));
        linears[0].sampled_output(sample, input.rows, normalized).into_iter().map(|y| self.0.eval_f64(y)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    #[test]
    fn names_parse_with_relu_as_default() {
        let read = |name: &str| name.parse::<Model>().ok().map(|model| model.name());
        assert_eq!(read("ln_linear"), Some("ln_linear_relu"));
        assert_eq!(read("ln_linear_HardSwish"), Some("ln_linear_hardswish"));
        for name in ["ln_linear_", "ln_linear_tanh", "my_ln_linear_relu", "ln_linear_relux"] {
            assert_eq!(read(name), None, "{name}");
        }
        for LnLinearModel(activation) in LnLinearModel::all() {
            let name = format!("ln_linear_{}", activation.name());
            assert_eq!(read(&name), Some(LnLinearModel(activation).name()), "{name}");
        }
    }
}
