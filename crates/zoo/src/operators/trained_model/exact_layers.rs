//! Matmuls of trained linear layers in double precision, on the operands that a correct kernel multiplies.

use super::rows::Rows;
use calorimeter_recipes::format::Format;
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::training::Operands;
use calorimeter_recipes::{Dtype, Float8Training, FloatType};
use rayon::prelude::*;
use std::borrow::Cow;

/// Linear layers of a model, indexed like their weights.
pub trait ExactLayers {
    /// Output: input weightᵀ.
    fn output(&self, layer: usize, input: &Rows, weight: &Rows) -> Rows;

    /// Input gradient: gradient weight.
    fn grad_input(&self, layer: usize, gradient: &Rows, weight: &Rows) -> Rows;

    /// Weight gradient: gradientᵀ input.
    fn grad_weight(&self, layer: usize, gradient: &Rows, input: &Rows) -> Rows;
}

/// Linear layers with operands quantized by a training recipe.
pub struct Quantized {
    pub training: Float8Training,
    /// Dtype that operands are rounded to before quantization.
    pub dtype: Dtype,
}

impl ExactLayers for Quantized {
    fn output(&self, _: usize, input: &Rows, weight: &Rows) -> Rows {
        match self.training.output {
            None => input.times(weight),
            Some(operands) => self.of_codes(input, weight, operands),
        }
    }

    fn grad_input(&self, _: usize, gradient: &Rows, weight: &Rows) -> Rows {
        match self.training.grad_input {
            None => gradient.times_as_it_lies(weight),
            Some(operands) => self.of_codes(gradient, &weight.transposed(), operands),
        }
    }

    fn grad_weight(&self, _: usize, gradient: &Rows, input: &Rows) -> Rows {
        match self.training.grad_weight {
            None => gradient.turned_times(input),
            Some(operands) => self.of_codes(&gradient.transposed(), &input.transposed(), operands),
        }
    }
}

impl Quantized {
    fn of_codes(&self, left: &Rows, right: &Rows, operands: Operands) -> Rows {
        self.stands_for(left, operands.left).times(&self.stands_for(right, operands.right))
    }

    /// Quantizes and dequantizes an operand; unchanged without a format.
    fn stands_for<'a>(&self, operand: &'a Rows, format: Option<Format>) -> Cow<'a, Rows> {
        let Some(format) = format else { return Cow::Borrowed(operand) };
        let rounded: Vec<f32> = operand.values.par_iter().map(|&value| self.dtype.round(value as f32)).collect();
        let dequantized = quantize(&rounded, operand.cols, format).dequantize();
        Cow::Owned(Rows { cols: operand.cols, values: dequantized.into_par_iter().map(f64::from).collect() })
    }
}
