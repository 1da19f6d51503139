//! The three products, on any backend that quantises.

use super::float8::{Float8Training, Operands};
use crate::Dtype;
use crate::device::{DeviceTensor, QuantBackend};
use crate::format::Grouping;
use crate::stored::Reading;
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
    let Some(Operands { left: left_format, right: right_format }) = operands else {
        return left.matmul(right.transpose());
    };
    let (left, right) = (DeviceTensor::quantise(left, left_format), DeviceTensor::quantise(right, right_format));
    let read = |operand: &DeviceTensor<B>, reading| operand.read(0..operand.size().0, reading, Dtype::F32);
    let blocks = [left_format, right_format].iter().any(|format| matches!(format.grouping, Grouping::Block(_)));
    if blocks {
        return read(&left, Reading::Numbers).matmul(read(&right, Reading::Numbers).transpose()).cast(dtype);
    }
    // Codes are exact in f32, also on tensor cores.
    let product = read(&left, Reading::Codes).matmul(read(&right, Reading::Codes).transpose());
    (product * read(&left, Reading::Scales) * read(&right, Reading::Scales).transpose()).cast(dtype)
}
