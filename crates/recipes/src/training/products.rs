//! The three products, on any backend that quantises.

use super::float8::{Float8Training, Operands};
use crate::device::{DeviceTensor, QuantBackend};
use crate::format::Grouping;
use crate::stored::Reading;
use crate::{Dtype, FloatType};
use burn::tensor::Tensor;

/// `input · weight`, the weight as burn keeps it, `[k, n]`.
pub fn output<B: QuantBackend>(input: Tensor<B, 2>, weight: Tensor<B, 2>, training: Float8Training) -> Tensor<B, 2> {
    product(input, weight.transpose(), training.output)
}

/// The gradient of the input.
pub fn grad_input<B: QuantBackend>(
    grad_output: Tensor<B, 2>,
    weight: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    product(grad_output, weight, training.grad_input)
}

/// The gradient of the weight, `[k, n]` like it: the operands are those of its transpose, so that the gradient is always on
/// the left.
pub fn grad_weight<B: QuantBackend>(
    grad_output: Tensor<B, 2>,
    input: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    product(grad_output.transpose(), input.transpose(), training.grad_weight).transpose()
}

/// `left · rightᵀ` in the type of `left`, rounded once.
fn product<B: QuantBackend>(left: Tensor<B, 2>, right: Tensor<B, 2>, operands: Option<Operands>) -> Tensor<B, 2> {
    let dtype = left.dtype();
    let Some(operands) = operands else { return left.matmul(right.transpose()) };
    let (Some(of_left), Some(of_right)) = (operands.left, operands.right) else {
        let [left, right] = [(left, operands.left), (right, operands.right)].map(|(operand, format)| match format {
            Some(format) => read(&DeviceTensor::quantise(operand, format), Reading::Numbers),
            None => operand.cast(Dtype::F32.burn()),
        });
        return left.matmul(right.transpose()).cast(dtype);
    };
    let (left, right) = (DeviceTensor::quantise(left, of_left), DeviceTensor::quantise(right, of_right));
    let blocks = [of_left, of_right].iter().any(|format| matches!(format.grouping, Grouping::Block(_)));
    if blocks {
        return read(&left, Reading::Numbers).matmul(read(&right, Reading::Numbers).transpose()).cast(dtype);
    }
    // Codes are exact in f32, also on tensor cores.
    let product = read(&left, Reading::Codes).matmul(read(&right, Reading::Codes).transpose());
    (product * read(&left, Reading::Scales) * read(&right, Reading::Scales).transpose()).cast(dtype)
}

/// All of an operand, in f32.
fn read<B: QuantBackend>(operand: &DeviceTensor<B>, reading: Reading) -> Tensor<B, 2> {
    operand.read(0..operand.size().0, reading, Dtype::F32)
}
