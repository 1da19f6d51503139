//! The layer that every recipe makes.

use burn::tensor::{Tensor, backend::Backend};

/// A linear layer without bias, `[tokens, k] -> [tokens, n]`.
pub trait Linear<B: Backend>: Send + Sync {
    /// Applies the layer; the output has the input's dtype.
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2>;
    /// Bytes its weight takes on the device, scales included.
    fn weight_bytes(&self) -> u64;
}
