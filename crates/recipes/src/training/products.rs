//! The three products, on any backend that quantizes.

use super::backend::Float8Backend;
use super::float8::{Casting, Float8Training, Operands};
use crate::device::{DeviceTensor, QuantBackend};
use crate::stored::Reading;
use crate::{Dtype, FloatType};
use burn::tensor::{Tensor, TensorPrimitive};

/// `input · weight`, the weight as burn keeps it, `[k, n]`.
pub fn output<B: QuantBackend + Float8Backend>(
    input: Tensor<B, 2>,
    weight: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    product(input, weight.transpose(), training.output, training.casting)
}

/// The gradient of the input.
pub fn grad_input<B: QuantBackend + Float8Backend>(
    grad_output: Tensor<B, 2>,
    weight: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    product(grad_output, weight, training.grad_input, training.casting)
}

/// The gradient of the weight, `[k, n]` like it: the operands are those of its transpose, so that the gradient is always on
/// the left.
pub fn grad_weight<B: QuantBackend + Float8Backend>(
    grad_output: Tensor<B, 2>,
    input: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    product(grad_output.transpose(), input.transpose(), training.grad_weight, training.casting).transpose()
}

/// `left · rightᵀ` in the type of `left`, rounded once.
fn product<B: QuantBackend + Float8Backend>(
    left: Tensor<B, 2>,
    right: Tensor<B, 2>,
    operands: Option<Operands>,
    casting: Casting,
) -> Tensor<B, 2> {
    let Some(operands) = operands else { return left.matmul(right.transpose()) };
    if casting == Casting::AtOnce {
        let [of_left, of_right] = [&left, &right].map(|tensor| tensor.clone().into_primitive().tensor());
        if let Some(product) = B::float8_product(of_left, of_right, operands) {
            return Tensor::from_primitive(TensorPrimitive::Float(product));
        }
    }
    stored(left, right, operands)
}

/// The same by way of packed codes.
fn stored<B: QuantBackend>(left: Tensor<B, 2>, right: Tensor<B, 2>, operands: Operands) -> Tensor<B, 2> {
    let dtype = left.dtype();
    let (Some(of_left), Some(of_right)) = (operands.left, operands.right) else {
        let [left, right] = [(left, operands.left), (right, operands.right)].map(|(operand, format)| match format {
            Some(format) => read(&DeviceTensor::quantize(operand, format), Reading::Numbers),
            None => operand.cast(Dtype::F32.burn()),
        });
        return left.matmul(right.transpose()).cast(dtype);
    };
    let (left, right) = (DeviceTensor::quantize(left, of_left), DeviceTensor::quantize(right, of_right));
    if operands.has_blocks() {
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
