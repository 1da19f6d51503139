//! Tensors saved between the passes of `transformer_block`.

use crate::operators::trained_model::norms::Normalized;
use burn::tensor::{Tensor, backend::Backend};

/// Tensors that the forward pass saves for the backward pass.
#[derive(Debug, Clone)]
pub(crate) struct TransformerBlockSaved<B: Backend> {
    pub first: Normalized<B>,
    /// Input of the QKV projection.
    pub into_attention: Tensor<B, 2>,
    /// Queries, keys and values: `[batch, heads, tokens, head]`.
    pub parts: [Tensor<B, 4>; 3],
    /// Softmax weights: `[batch, heads, tokens, tokens]`.
    pub shares: Tensor<B, 4>,
    pub mixed: Tensor<B, 2>,
    pub second: Normalized<B>,
    /// Input of the MLP.
    pub into_mlp: Tensor<B, 2>,
    /// Hidden layer before and after GELU.
    pub up: Tensor<B, 2>,
    pub hidden: Tensor<B, 2>,
}
