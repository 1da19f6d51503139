//! Matmuls of trained linear layers in double precision, on the operands that a correct kernel multiplies.

use super::matrix_f64::MatrixF64;
use calorimeter_recipes::format::Format;
use calorimeter_recipes::quantize::quantize;
use calorimeter_recipes::training::OperandFormats;
use calorimeter_recipes::{Dtype, Float8Training, FloatType};
use rayon::prelude::*;
use std::borrow::Cow;

/// Linear layers of a model, indexed like their weights.
pub trait ReferenceLayers {
    /// Output: input weightᵀ.
    fn output(&self, layer: usize, input: &MatrixF64, weight: &MatrixF64) -> MatrixF64;

    /// Input gradient: gradient weight.
    fn grad_input(&self, layer: usize, gradient: &MatrixF64, weight: &MatrixF64) -> MatrixF64;

    /// Weight gradient: gradientᵀ input.
    fn grad_weight(&self, layer: usize, gradient: &MatrixF64, input: &MatrixF64) -> MatrixF64;
}

/// Linear layers with operands quantized by a training recipe.
pub(super) struct QuantizedLayers {
    pub training: Float8Training,
    /// Dtype that operands are rounded to before quantization.
    pub dtype: Dtype,
}

impl ReferenceLayers for QuantizedLayers {
    fn output(&self, _: usize, input: &MatrixF64, weight: &MatrixF64) -> MatrixF64 {
        match self.training.output {
            None => input.matmul_transposed(weight),
            Some(operands) => self.quantized_matmul(input, weight, operands),
        }
    }

    fn grad_input(&self, _: usize, gradient: &MatrixF64, weight: &MatrixF64) -> MatrixF64 {
        match self.training.grad_input {
            None => gradient.matmul(weight),
            Some(operands) => self.quantized_matmul(gradient, &weight.transpose(), operands),
        }
    }

    fn grad_weight(&self, _: usize, gradient: &MatrixF64, input: &MatrixF64) -> MatrixF64 {
        match self.training.grad_weight {
            None => gradient.transposed_matmul(input),
            Some(operands) => self.quantized_matmul(&gradient.transpose(), &input.transpose(), operands),
        }
    }
}

impl QuantizedLayers {
    fn quantized_matmul(&self, left: &MatrixF64, right: &MatrixF64, operands: OperandFormats) -> MatrixF64 {
        self.fake_quantize(left, operands.left).matmul_transposed(&self.fake_quantize(right, operands.right))
    }

    /// Quantizes and dequantizes an operand; unchanged without a format.
    fn fake_quantize<'a>(&self, operand: &'a MatrixF64, format: Option<Format>) -> Cow<'a, MatrixF64> {
        let Some(format) = format else { return Cow::Borrowed(operand) };
        let rounded: Vec<f32> = operand.values.par_iter().map(|&value| self.dtype.round(value as f32)).collect();
        let dequantized = quantize(&rounded, operand.cols, format).dequantize();
        Cow::Owned(MatrixF64 { cols: operand.cols, values: dequantized.into_par_iter().map(f64::from).collect() })
    }
}
