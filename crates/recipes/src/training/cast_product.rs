//! Float8 matmul on GPUs through CubeCL, with operands cast by fused kernels.

use super::float8::Operands;
use crate::device::cast::{Cast, cast, is_castable, scaled};
use crate::stored::Reading;
use crate::{Dtype, FloatType};
use burn::tensor::backend::Backend;
use burn::tensor::{Tensor, TensorPrimitive};
use burn_cubecl::tensor::CubeTensor;
use burn_cubecl::{BoolElement, CubeBackend, CubeRuntime, FloatElement, IntElement};

/// Returns `left · rightᵀ` in the dtype of `left`, rounded once; `None` for formats without fused cast kernels.
pub fn product<R: CubeRuntime, F: FloatElement, I: IntElement, BT: BoolElement>(
    left: CubeTensor<R>,
    right: CubeTensor<R>,
    operands: Operands,
) -> Option<CubeTensor<R>> {
    if [operands.left, operands.right].iter().flatten().any(|format| !is_castable(format)) {
        return None;
    }
    let dtype = left.dtype;
    let both = operands.left.is_some() && operands.right.is_some();
    // Quantized values are exact in f32 and on tensor cores.
    let reading = if both && !operands.has_blocks() { Reading::Codes } else { Reading::Numbers };
    let [left, right] = [(left, operands.left), (right, operands.right)].map(|(operand, format)| match format {
        Some(format) => cast(operand, format, reading),
        None => Cast { numbers: primitive(tensor::<R, F, I, BT>(operand).cast(Dtype::F32.burn())), scales: None },
    });
    let right_numbers = tensor::<R, F, I, BT>(right.numbers).transpose();
    let product = tensor::<R, F, I, BT>(left.numbers).matmul(right_numbers);
    Some(match (left.scales, right.scales) {
        (Some(left), Some(right)) => scaled(primitive(product), [left, right], dtype),
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
