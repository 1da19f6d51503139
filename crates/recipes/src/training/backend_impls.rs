//! Implementations of [`Float8Backend`] for backends without autodiff.

use super::backend::Float8Backend;
use super::float8::Float8Training;
#[cfg(feature = "cube")]
use super::float8::OperandFormats;
use super::gemms;
use crate::device::QuantBackend;
use burn::tensor::ops::FloatTensor;
use burn::tensor::{Tensor, TensorPrimitive};

/// Forward pass without gradients.
#[cfg_attr(not(any(feature = "cpu", feature = "cube")), expect(dead_code, reason = "no backend is built in"))]
fn forward<B: QuantBackend + Float8Backend>(
    input: FloatTensor<B>,
    weight: FloatTensor<B>,
    training: Float8Training,
) -> FloatTensor<B> {
    let tensor = |primitive| Tensor::<B, 2>::from_primitive(TensorPrimitive::Float(primitive));
    gemms::output(tensor(input), tensor(weight), training).into_primitive().tensor()
}

#[cfg(feature = "cpu")]
impl Float8Backend for burn_flex::Flex {
    fn float8_linear(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        training: Float8Training,
    ) -> FloatTensor<Self> {
        forward::<Self>(input, weight, training)
    }
}

#[cfg(feature = "cube")]
impl<R, F, I, BT> Float8Backend for burn_cubecl::CubeBackend<R, F, I, BT>
where
    R: burn_cubecl::CubeRuntime,
    F: burn_cubecl::FloatElement,
    I: burn_cubecl::IntElement,
    BT: burn_cubecl::BoolElement,
{
    fn float8_linear(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        training: Float8Training,
    ) -> FloatTensor<Self> {
        forward::<Self>(input, weight, training)
    }

    fn float8_matmul(
        left: FloatTensor<Self>,
        right: FloatTensor<Self>,
        operands: OperandFormats,
    ) -> Option<FloatTensor<Self>> {
        super::cast_gemm::cast_matmul::<R, F, I, BT>(left, right, operands)
    }
}

#[cfg(feature = "cube")]
impl<B: burn_fusion::FusionBackend + QuantBackend> Float8Backend for burn_fusion::Fusion<B> {
    fn float8_linear(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        training: Float8Training,
    ) -> FloatTensor<Self> {
        forward::<Self>(input, weight, training)
    }
}
