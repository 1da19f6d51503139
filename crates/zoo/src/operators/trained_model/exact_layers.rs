//! The three products of each linear layer in double precision, on the operands that a correct kernel multiplies.

use super::rows::Rows;
use calorimeter_recipes::format::Format;
use calorimeter_recipes::quantise::quantise;
use calorimeter_recipes::training::Operands;
use calorimeter_recipes::{Dtype, Float8Training, FloatType};

/// What a model asks of its linear layers, which are numbered as their weights are.
pub trait ExactLayers {
    /// What comes out: rows of the input times rows of the weight.
    fn output(&self, layer: usize, input: &Rows, weight: &Rows) -> Rows;

    /// The gradient of the input.
    fn grad_input(&self, layer: usize, gradient: &Rows, weight: &Rows) -> Rows;

    /// The gradient of the weight.
    fn grad_weight(&self, layer: usize, gradient: &Rows, input: &Rows) -> Rows;
}

/// As a recipe has it.
pub struct Quantised {
    pub training: Float8Training,
    /// What operands are rounded to before they are quantised.
    pub dtype: Dtype,
}

impl ExactLayers for Quantised {
    fn output(&self, _: usize, input: &Rows, weight: &Rows) -> Rows {
        self.product(input.clone(), weight.clone(), self.training.output)
    }

    fn grad_input(&self, _: usize, gradient: &Rows, weight: &Rows) -> Rows {
        self.product(gradient.clone(), weight.transposed(), self.training.grad_input)
    }

    fn grad_weight(&self, _: usize, gradient: &Rows, input: &Rows) -> Rows {
        self.product(gradient.transposed(), input.transposed(), self.training.grad_weight)
    }
}

impl Quantised {
    fn product(&self, left: Rows, right: Rows, operands: Option<Operands>) -> Rows {
        match operands {
            None => left.times(&right),
            Some(Operands { left: of_left, right: of_right }) => {
                self.stands_for(left, of_left).times(&self.stands_for(right, of_right))
            }
        }
    }

    /// The numbers that an operand's codes stand for.
    fn stands_for(&self, operand: Rows, format: Option<Format>) -> Rows {
        let Some(format) = format else { return operand };
        let rounded: Vec<f32> = operand.values.iter().map(|&value| self.dtype.round(value as f32)).collect();
        let numbers = quantise(&rounded, operand.cols, format).dequantise();
        Rows { cols: operand.cols, values: numbers.into_iter().map(f64::from).collect() }
    }
}
