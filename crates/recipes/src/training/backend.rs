//! Backends on which layers are trained in float8.

use super::float8::Float8Training;
use super::products;
use crate::device::QuantBackend;
use burn::tensor::backend::Backend;
use burn::tensor::ops::FloatTensor;
use burn::tensor::{Tensor, TensorPrimitive};

/// A burn backend on which the product of a linear layer can be in float8; on `Autodiff` its gradients are, too.
pub trait Float8Backend: Backend {
    /// `input · weight`, `[m, k]` and `[k, n]`.
    fn float8_linear(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        training: Float8Training,
    ) -> FloatTensor<Self>;
}

/// The product where nothing is differentiated.
#[cfg_attr(not(any(feature = "cpu", feature = "cube")), expect(dead_code, reason = "no backend is built in"))]
fn forward<B: QuantBackend>(input: FloatTensor<B>, weight: FloatTensor<B>, training: Float8Training) -> FloatTensor<B> {
    let tensor = |primitive| Tensor::<B, 2>::from_primitive(TensorPrimitive::Float(primitive));
    products::output(tensor(input), tensor(weight), training).into_primitive().tensor()
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
