//! Backends on which layers are trained in float8.

use super::float8::{Float8Training, Operands};
use burn::tensor::backend::Backend;
use burn::tensor::ops::FloatTensor;

/// A burn backend on which the product of a linear layer can be in float8; on `Autodiff` its gradients are, too.
pub trait Float8Backend: Backend {
    /// `input · weight`, `[m, k]` and `[k, n]`.
    fn float8_linear(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        training: Float8Training,
    ) -> FloatTensor<Self>;

    /// `left · rightᵀ` in the type of `left`, rounded once, each operand cast [at once](super::Casting::AtOnce), where there
    /// are kernels for that.
    fn float8_product(
        _left: FloatTensor<Self>,
        _right: FloatTensor<Self>,
        _operands: Operands,
    ) -> Option<FloatTensor<Self>> {
        None
    }
}
