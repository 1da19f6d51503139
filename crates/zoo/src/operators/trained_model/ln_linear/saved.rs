//! Tensors saved between the passes of `ln_linear_<activation>`.

use crate::operators::trained_model::norms::Normalized;
use burn::tensor::{Tensor, backend::Backend};

/// Tensors that the forward pass saves for the backward pass.
#[derive(Debug, Clone)]
pub(crate) struct LnLinearSaved<B: Backend> {
    pub normalized: Normalized<B>,
    /// Input of the activation.
    pub before: Tensor<B, 2>,
}
