//! Tensors saved between the passes of `swiglu_mlp`.

use burn::tensor::{Tensor, backend::Backend};

/// Tensors that the forward pass saves for the backward pass.
#[derive(Debug, Clone)]
pub(crate) struct SwigluMlpSaved<B: Backend> {
    pub input: Tensor<B, 2>,
    pub gate: Tensor<B, 2>,
    /// silu(gate).
    pub opened: Tensor<B, 2>,
    pub up: Tensor<B, 2>,
    pub hidden: Tensor<B, 2>,
}
