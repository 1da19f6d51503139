//! Gradient of short attention.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError, ShortAttentionPlan,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    short_attention::{head_macros, head_vector_width},
    sizes::check_size,
};
use crate::Dtype;

/// Plan of the gradient of x (rows of q, k and v), from x and the gradient of the output of [`ShortAttentionPlan`].
#[derive(Debug)]
pub struct ShortAttentionGradientPlan {
    kernel: CudaKernel,
    algorithm: String,
}

/// Tokens per warp; the other tokens are read once for all of them.
const TOKENS_PER_WARP: usize = 2;

impl ShortAttentionGradientPlan {
    /// Compiles for `sequences` sequences with `heads` heads of `head` elements.
    pub fn new(
        device: &Arc<CudaDevice>,
        kind: Dtype,
        sequences: usize,
        heads: usize,
        head: usize,
    ) -> Result<Self, NativeError> {
        let blocks = check_size("the number of heads of all sequences", sequences * heads)?;
        check_size("the length of a row", 3 * heads * head)?;
        let name = format!("short_attention_gradient_{kind}");
        let bytes = sequences * ShortAttentionPlan::TOKENS * heads * head * kind.width();
        let extent = KernelArgs {
            reads: vec![("x", 3 * bytes), ("dy", bytes)],
            writes: vec![("dx", 3 * bytes)],
            sizes: (sequences as u64, 0),
        };
        let threads = (32, (ShortAttentionPlan::TOKENS / TOKENS_PER_WARP) as u32);
        let geometry = LaunchGeometry { blocks: blocks as u32, threads };
        let macros = macros(&name, kind, heads, head);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::ShortAttentionGradient, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: a block per head and sequence, {TOKENS_PER_WARP} tokens per warp, {} elements per access",
                head_vector_width(kind, head)
            ),
        })
    }

    /// Enqueues a launch.
    pub fn enqueue(&self, x: &DeviceBuffer, dy: &DeviceBuffer, dx: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory, &dy.memory], &mut [&mut dx.memory])
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, heads: usize, head: usize) -> Vec<String> {
    let mut macros = head_macros(name, kind, heads, head);
    macros.push(format!("TOKENS_PER_WARP={TOKENS_PER_WARP}"));
    macros
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
