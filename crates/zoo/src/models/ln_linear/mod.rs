//! `ln_linear_<activation>`: layer normalization without parameters, a linear layer without bias, an activation.

mod burn;
mod host;
#[cfg(feature = "cuda")]
mod native;

use crate::normalize::layer_norm_exact;
use crate::registry::table::Zoo;
use crate::{Activate, Activation, Definition, ExactLinear, Layout, Matrix, Sample};
use calorimeter_shapes::Shape;

/// Layer normalization, linear layer, activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LnLinear(
    /// What follows the linear layer.
    pub Activation,
);

impl LnLinear {
    /// One for each activation.
    pub fn all() -> [Self; 7] {
        Activation::ALL.map(Self)
    }
}

/// Registers them with the ways to run them.
pub(super) fn register(zoo: &Zoo) {
    zoo.models(LnLinear::all()).burn().cube().native().host();
}

impl Definition for LnLinear {
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

    // The activation may be written in any case, and is a ReLU where it is left out.
    fn answers_to(&self, name: &str) -> bool {
        match name.strip_prefix("ln_linear") {
            Some("") => self.0 == Activation::Relu,
            Some(rest) => rest.strip_prefix('_').is_some_and(|word| word.eq_ignore_ascii_case(self.0.name())),
            None => false,
        }
    }

    fn about(&self) -> &'static str {
        "layer norm, linear layer without bias, activation"
    }

    fn layout(&self, shape: Shape) -> Layout {
        let (m, k, n) = (shape.m(), shape.k(), shape.n());
        // Unfused, the normalization holds two f32 copies of the input, and the product exists before its activation.
        Layout { input: (m, k), output: (m, n), linears: vec![(n, k)], intermediate: 4 * m * k + m * n }
    }

    fn flops(&self, shape: Shape) -> u64 {
        2 * shape.m() * shape.k() * shape.n()
    }

    fn roundings(&self) -> u32 {
        2
    }

    fn sample(&self, shape: Shape) -> Sample {
        // Behind an activation nothing is known of sums.
        Sample::of_whole_rows(shape)
    }

    fn reference(&self, _: Shape, input: &Matrix, linears: &[ExactLinear], sample: &Sample) -> Vec<f64> {
        let normalized = |row| layer_norm_exact(&input.exact_row(row));
        linears[0].products(sample, input.rows, normalized).into_iter().map(|y| self.0.exact(y)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    #[test]
    fn names_are_exact_and_relu_is_the_default() {
        let read = |name: &str| name.parse::<Model>().ok().map(|model| model.name());
        assert_eq!(read("ln_linear"), Some("ln_linear_relu"));
        assert_eq!(read("ln_linear_HardSwish"), Some("ln_linear_hardswish"));
        for name in ["ln_linear_", "ln_linear_tanh", "my_ln_linear_relu", "ln_linear_relux"] {
            assert_eq!(read(name), None, "{name}");
        }
        for LnLinear(activation) in LnLinear::all() {
            let name = format!("ln_linear_{}", activation.name());
            assert_eq!(read(&name), Some(LnLinear(activation).name()), "{name}");
        }
    }
}
