//! Backends that support float8 training.

use super::float8::{Float8Training, OperandFormats};
use burn::tensor::backend::Backend;
use burn::tensor::ops::FloatTensor;

/// Backend on which linear layers can run in float8; on `Autodiff` this includes the gradients.
pub trait Float8Backend: Backend {
    /// Returns `input · weight` of `[m, k]` and `[k, n]`.
    fn float8_linear(
        input: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        training: Float8Training,
    ) -> FloatTensor<Self>;

    /// Returns `left · rightᵀ` in the dtype of `left`, rounded once, with operands cast by [fused
    /// kernels](super::CastStrategy::Fused); `None` if the backend has none for these formats.
    fn float8_matmul(
        _left: FloatTensor<Self>,
        _right: FloatTensor<Self>,
        _operands: OperandFormats,
    ) -> Option<FloatTensor<Self>> {
        None
    }
}
