//! The three GEMMs of a linear layer, for any backend with quantization.

use super::backend::Float8Backend;
use super::float8::{Casting, Float8Training, Operands};
use crate::device::{DeviceTensor, QuantBackend};
use crate::stored::Reading;
use crate::{Dtype, FloatType};
use burn::tensor::{Tensor, TensorPrimitive};

/// Returns `input · weight`; burn stores the weight as `[k, n]`.
pub fn output<B: QuantBackend + Float8Backend>(
    input: Tensor<B, 2>,
    weight: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    product(input, weight.transpose(), training.output, training.casting)
}

/// Returns the gradient of the input.
pub fn grad_input<B: QuantBackend + Float8Backend>(
    grad_output: Tensor<B, 2>,
    weight: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    product(grad_output, weight, training.grad_input, training.casting)
}

/// Returns the gradient of the weight, `[k, n]`. The transpose is computed, so that the output gradient is always the
/// left operand.
pub fn grad_weight<B: QuantBackend + Float8Backend>(
    grad_output: Tensor<B, 2>,
    input: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    product(grad_output.transpose(), input.transpose(), training.grad_weight, training.casting).transpose()
}

/// Returns `left · rightᵀ` in the dtype of `left`, rounded once.
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

/// Computes the matmul with operands quantized to packed words.
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
    // Quantized values are exact in f32 and on tensor cores.
    let product = read(&left, Reading::Codes).matmul(read(&right, Reading::Codes).transpose());
    (product * read(&left, Reading::Scales) * read(&right, Reading::Scales).transpose()).cast(dtype)
}

/// Reads a whole operand in f32.
fn read<B: QuantBackend>(operand: &DeviceTensor<B>, reading: Reading) -> Tensor<B, 2> {
    operand.read(0..operand.size().0, reading, Dtype::F32)
}
