//! Interface of the linear layers of all recipes.

use burn::tensor::{Tensor, backend::Backend};

/// Linear layer without bias, `[tokens, k] -> [tokens, n]`.
pub trait Linear<B: Backend>: Send + Sync {
    /// Applies the layer; the output has the dtype of the input.
    fn forward(&self, input: Tensor<B, 2>) -> Tensor<B, 2>;
    /// Bytes of the weight on the device, including scales.
    fn weight_bytes(&self) -> u64;
}
