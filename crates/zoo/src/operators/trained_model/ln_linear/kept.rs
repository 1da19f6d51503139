//! What the way there leaves for the way back.

use crate::operators::trained_model::norms::Normalized;
use burn::tensor::{Tensor, backend::Backend};

/// What the way back needs.
#[derive(Debug, Clone)]
pub struct Kept<B: Backend> {
    pub normalized: Normalized<B>,
    /// What goes into the activation.
    pub before: Tensor<B, 2>,
}
