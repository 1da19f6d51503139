//! Gradient of short attention.

use super::{
    CudaDevice, CudaKernel, NativeError, SHORT_ATTENTION_TOKENS,
    kernel::{KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    short_attention::{head_macros, head_vector_width},
    sizes::check_size,
};
use crate::Dtype;

/// Tokens per warp; the other tokens are read once for all of them.
const TOKENS_PER_WARP: usize = 2;

impl CudaKernel {
    /// Gradient of [`CudaKernel::short_attention`]. Inputs: x, whose rows are q, k and v, and the gradient of y; output:
    /// gradient of x.
    pub fn short_attention_gradient(
        device: &CudaDevice,
        kind: Dtype,
        sequences: usize,
        heads: usize,
        head: usize,
    ) -> Result<Self, NativeError> {
        let blocks = check_size("the number of heads of all sequences", sequences * heads)?;
        check_size("the length of a row", 3 * heads * head)?;
        let name = format!("short_attention_gradient_{kind}");
        let bytes = sequences * SHORT_ATTENTION_TOKENS * heads * head * kind.width();
        let args = KernelArgs::new([("x", 3 * bytes), ("dy", bytes)], [("dx", 3 * bytes)], (sequences, 0));
        let geometry = LaunchGeometry::new(blocks, (32, SHORT_ATTENTION_TOKENS / TOKENS_PER_WARP))?;
        let macros = macros(&name, kind, heads, head);
        let kernel = Self::prepare(device, CudaSource::ShortAttentionGradient, &name, macros, args, geometry)?;
        Ok(kernel.with_description(format!(
            "{name}: a block per head and sequence, {TOKENS_PER_WARP} tokens per warp, {} elements per access",
            head_vector_width(kind, head)
        )))
    }
}

fn macros(name: &str, kind: Dtype, heads: usize, head: usize) -> Vec<String> {
    [head_macros(name, kind, heads, head), vec![format!("TOKENS_PER_WARP={TOKENS_PER_WARP}")]].concat()
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_dtype_and_head_width() {
        for kind in Dtype::ALL {
            for head in [1, 17, 128, 512] {
                assert_compiles(CudaSource::ShortAttentionGradient, &macros("gradient", kind, 8, head));
            }
        }
    }
}
