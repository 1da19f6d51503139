//! What the way there leaves for the way back.

use burn::tensor::{Tensor, backend::Backend};

/// What the way back needs.
#[derive(Debug, Clone)]
pub struct Kept<B: Backend> {
    pub input: Tensor<B, 2>,
    pub gate: Tensor<B, 2>,
    /// The gate behind its SiLU.
    pub opened: Tensor<B, 2>,
    pub up: Tensor<B, 2>,
    pub hidden: Tensor<B, 2>,
}
