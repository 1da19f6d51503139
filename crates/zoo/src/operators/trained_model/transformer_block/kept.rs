//! What the way there leaves for the way back.

use crate::operators::trained_model::norms::Normalized;
use burn::tensor::{Tensor, backend::Backend};

/// What the way back needs.
#[derive(Debug, Clone)]
pub struct Kept<B: Backend> {
    pub first: Normalized<B>,
    /// What attention's layer is given.
    pub into_attention: Tensor<B, 2>,
    /// Queries, keys and values: sequences, heads, tokens, features.
    pub parts: [Tensor<B, 4>; 3],
    /// What each token takes of each.
    pub shares: Tensor<B, 4>,
    pub mixed: Tensor<B, 2>,
    pub second: Normalized<B>,
    /// What the MLP is given.
    pub into_mlp: Tensor<B, 2>,
    /// Its hidden layer before and after GELU.
    pub up: Tensor<B, 2>,
    pub hidden: Tensor<B, 2>,
}
