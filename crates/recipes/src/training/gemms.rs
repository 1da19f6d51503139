//! The three GEMMs of a linear layer, for any backend with quantization.

use super::backend::Float8Backend;
use super::float8::{CastStrategy, Float8Training, OperandFormats};
use crate::device::{DeviceTensor, QuantBackend};
use crate::packed_tensor::TensorPart;
use crate::{Dtype, FloatType};
use burn::tensor::{Tensor, TensorPrimitive};

/// Returns `input · weight`; burn stores the weight as `[k, n]`.
pub fn output<B: QuantBackend + Float8Backend>(
    input: Tensor<B, 2>,
    weight: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    matmul_transposed(input, weight.transpose(), training.output, training.cast_strategy)
}

/// Returns the gradient of the input.
pub fn grad_input<B: QuantBackend + Float8Backend>(
    grad_output: Tensor<B, 2>,
    weight: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    matmul_transposed(grad_output, weight, training.grad_input, training.cast_strategy)
}

/// Returns the gradient of the weight, `[k, n]`. The transpose is computed, so that the output gradient is always the
/// left operand.
pub fn grad_weight<B: QuantBackend + Float8Backend>(
    grad_output: Tensor<B, 2>,
    input: Tensor<B, 2>,
    training: Float8Training,
) -> Tensor<B, 2> {
    matmul_transposed(grad_output.transpose(), input.transpose(), training.grad_weight, training.cast_strategy)
        .transpose()
}

/// Returns `left · rightᵀ` in the dtype of `left`, rounded once.
fn matmul_transposed<B: QuantBackend + Float8Backend>(
    left: Tensor<B, 2>,
    right: Tensor<B, 2>,
    operands: Option<OperandFormats>,
    casting: CastStrategy,
) -> Tensor<B, 2> {
    let Some(operands) = operands else { return left.matmul(right.transpose()) };
    if casting == CastStrategy::Fused {
        let [of_left, of_right] = [&left, &right].map(|tensor| tensor.clone().into_primitive().tensor());
        if let Some(product) = B::float8_matmul(of_left, of_right, operands) {
            return Tensor::from_primitive(TensorPrimitive::Float(product));
        }
    }
    matmul_packed(left, right, operands)
}

/// Computes the matmul with operands quantized to packed words.
fn matmul_packed<B: QuantBackend>(left: Tensor<B, 2>, right: Tensor<B, 2>, operands: OperandFormats) -> Tensor<B, 2> {
    let dtype = left.dtype();
    let (Some(of_left), Some(of_right)) = (operands.left, operands.right) else {
        let [left, right] = [(left, operands.left), (right, operands.right)].map(|(operand, format)| match format {
            Some(format) => read_all(&DeviceTensor::quantize(operand, format), TensorPart::Values),
            None => operand.cast(Dtype::F32.burn()),
        });
        return left.matmul(right.transpose()).cast(dtype);
    };
    let (left, right) = (DeviceTensor::quantize(left, of_left), DeviceTensor::quantize(right, of_right));
    if operands.has_blocks() {
        return read_all(&left, TensorPart::Values)
            .matmul(read_all(&right, TensorPart::Values).transpose())
            .cast(dtype);
    }
    // Quantized values are exact in f32 and on tensor cores.
    let product =
        read_all(&left, TensorPart::QuantizedValues).matmul(read_all(&right, TensorPart::QuantizedValues).transpose());
    (product * read_all(&left, TensorPart::Scales) * read_all(&right, TensorPart::Scales).transpose()).cast(dtype)
}

/// Reads a whole operand in f32.
fn read_all<B: QuantBackend>(operand: &DeviceTensor<B>, reading: TensorPart) -> Tensor<B, 2> {
    operand.read_rows(0..operand.size().0, reading, Dtype::F32)
}
