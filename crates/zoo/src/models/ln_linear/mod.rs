//! `ln_linear_<activation>`: layer normalisation without parameters, a linear layer without bias, an activation.

use crate::normalise::{in_f32, layer_norm, layer_norm_exact};
use crate::{Activation, Definition, ExactLinear, Forward, Layout, Matrix, Sample};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::Linear;
use calorimeter_shapes::Shape;
use std::fmt;

/// Layer normalisation, linear layer, activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LnLinear(
    /// What follows the linear layer.
    pub Activation,
);

const PREFIX: &str = "ln_linear";

impl fmt::Display for LnLinear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}_{}", self.0.name())
    }
}

impl Definition for LnLinear {
    const ABOUT: &'static str = "layer norm, linear layer without bias, activation";

    fn names() -> Vec<String> {
        Activation::ALL.iter().map(|(activation, _)| Self(*activation).to_string()).collect()
    }

    fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(PREFIX)?;
        if rest.is_empty() {
            return Some(Self(Activation::Relu));
        }
        let wanted = rest.strip_prefix('_')?.to_ascii_lowercase();
        Activation::ALL.iter().find(|(_, name)| *name == wanted).map(|(activation, _)| Self(*activation))
    }

    fn layout(&self, shape: Shape) -> Layout {
        let (m, k, n) = (shape.m(), shape.k(), shape.n());
        // Unfused, the normalisation holds two f32 copies of the input, and the product exists before its activation.
        Layout { input: (m, k), output: (m, n), linears: vec![(n, k)], intermediate: 4 * m * k + m * n }
    }

    fn flops(&self, shape: Shape) -> u64 {
        2 * shape.m() * shape.k() * shape.n()
    }

    fn roundings(&self) -> u32 {
        2
    }

    fn forward<B: Backend>(&self, _: Shape, linears: Vec<Box<dyn Linear<B>>>, input: Tensor<B, 2>) -> Forward<B> {
        let activation = self.0;
        Box::new(move || activation.apply(linears[0].forward(in_f32(input.clone(), layer_norm))))
    }

    fn sample(&self, shape: Shape) -> Sample {
        Sample::of_product(shape)
    }

    fn reference(&self, _: Shape, input: &Matrix, linears: &[ExactLinear], sample: &Sample) -> Vec<f64> {
        let normalised = |row| layer_norm_exact(&input.exact_row(row));
        linears[0].products(sample, input.rows, normalised).into_iter().map(|y| self.0.exact(y)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_exact_and_relu_is_the_default() {
        assert_eq!(LnLinear::parse("ln_linear"), Some(LnLinear(Activation::Relu)));
        assert_eq!(LnLinear::parse("ln_linear_HardSwish"), Some(LnLinear(Activation::HardSwish)));
        for name in ["ln_linear_", "ln_linear_tanh", "my_ln_linear_relu", "ln_linear_relux"] {
            assert_eq!(LnLinear::parse(name), None, "{name}");
        }
        assert!(LnLinear::names().iter().all(|name| LnLinear::parse(name).is_some_and(|m| m.to_string() == *name)));
    }
}
