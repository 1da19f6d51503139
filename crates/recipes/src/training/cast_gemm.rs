//! Float8 matmul on GPUs through CubeCL, with operands cast by fused kernels.

use super::float8::OperandFormats;
use crate::device::cast::{CastMatrix, apply_scales, cast, is_castable};
use crate::packed_tensor::TensorPart;
use crate::{Dtype, FloatType};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorPrimitive};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime, FloatElement, IntElement};

/// Returns `left · rightᵀ` in the dtype of `left`, rounded once; `None` for formats without fused cast kernels.
pub(super) fn cast_matmul<R: CubeRuntime, F: FloatElement, I: IntElement, BT: BoolElement>(
    left: CubeTensor<R>,
    right: CubeTensor<R>,
    operands: OperandFormats,
) -> Option<CubeTensor<R>> {
    if [operands.left, operands.right].iter().flatten().any(|format| !is_castable(format)) {
        return None;
    }
    let dtype = left.dtype;
    let both = operands.left.is_some() && operands.right.is_some();
    // Quantized values are exact in f32 and on tensor cores.
    let reading = if both && !operands.has_blocks() { TensorPart::QuantizedValues } else { TensorPart::Values };
    let [left, right] = [(left, operands.left), (right, operands.right)].map(|(operand, format)| match format {
        Some(format) => cast(operand, format, reading),
        None => CastMatrix { values: primitive(tensor::<R, F, I, BT>(operand).cast(Dtype::F32.burn())), scales: None },
    });
    let right_numbers = tensor::<R, F, I, BT>(right.values).transpose();
    let product = tensor::<R, F, I, BT>(left.values).matmul(right_numbers);
    Some(match (left.scales, right.scales) {
        (Some(left), Some(right)) => apply_scales(primitive(product), [left, right], dtype),
        _ => primitive(product.cast(dtype)),
    })
}

fn tensor<R: CubeRuntime, F: FloatElement, I: IntElement, BT: BoolElement>(
    primitive: CubeTensor<R>,
) -> Tensor<CubeBackend<R, F, I, BT>, 2> {
    Tensor::from_primitive(TensorPrimitive::Float(primitive))
}

fn primitive<B: Backend>(tensor: Tensor<B, 2>) -> B::FloatTensorPrimitive {
    tensor.into_primitive().tensor()
}
