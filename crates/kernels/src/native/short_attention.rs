//! Attention for sequences of 16 tokens.

use super::{
    ComputeCapability, CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::DynamicSpec,
    nvrtc::CudaSource,
    sizes::check_size,
};
use crate::Dtype;

/// Tokens per sequence of [`CudaKernel::short_attention`].
pub const SHORT_ATTENTION_TOKENS: usize = 16;

/// Query tokens per warp; keys and values are read once for all of them.
const QUERIES_PER_WARP: usize = 2;
/// Warps per block of the tensor-core kernel; each computes one head.
const WARPS_PER_BLOCK: usize = 4;

impl CudaKernel {
    /// Unmasked attention among the 16 tokens of each sequence: y = softmax(q kᵀ / √head) v for each of `heads` heads
    /// of `head` elements, computed in f32. Input: x, whose rows hold q, k and v of one token, each divided into heads;
    /// output: y, whose rows hold the heads of one token.
    pub fn short_attention(
        device: &CudaDevice,
        kind: Dtype,
        sequences: usize,
        heads: usize,
        head: usize,
    ) -> Result<Self, NativeError> {
        let blocks = check_size("the number of heads of all sequences", sequences * heads)?;
        check_size("the length of a row", 3 * heads * head)?;
        if let Some(kernel) = tensor_core_kernel(device, kind, sequences, (heads, head), None)? {
            return Ok(kernel);
        }
        let name = format!("short_attention_{kind}");
        let bytes = sequences * SHORT_ATTENTION_TOKENS * heads * head * kind.width();
        let args = KernelArgs::new([("x", 3 * bytes)], [("y", bytes)], (sequences, 0));
        let geometry = LaunchGeometry::new(blocks, (32, SHORT_ATTENTION_TOKENS / QUERIES_PER_WARP))?;
        let macros = macros(&name, kind, heads, head);
        let kernel = Self::prepare(device, CudaSource::ShortAttention, &name, macros, args, geometry)?;
        Ok(kernel.with_description(format!(
            "{name}: a block per head and sequence, {QUERIES_PER_WARP} tokens per warp, {} elements per access",
            head_vector_width(kind, head)
        )))
    }
}

/// Elements per access of a head.
pub(super) fn head_vector_width(kind: Dtype, head: usize) -> usize {
    if head.is_multiple_of(vector_width(kind)) { vector_width(kind) } else { 1 }
}

/// True if the tensor-core kernel supports dtype and head width on this GPU.
pub(super) fn supports_tensor_cores(kind: Dtype, head: usize, capability: ComputeCapability) -> bool {
    kind != Dtype::F32 && head.is_multiple_of(32) && capability >= ComputeCapability::AMPERE
}

/// Compiles the tensor-core kernel; `None` if unsupported. With a quantization specification the kernel also writes the
/// tensor scale of y as the second output, and keeps two words of state, which are 0 between launches.
pub(super) fn tensor_core_kernel(
    device: &CudaDevice,
    kind: Dtype,
    sequences: usize,
    (heads, head): (usize, usize),
    scaled: Option<DynamicSpec>,
) -> Result<Option<CudaKernel>, NativeError> {
    if !supports_tensor_cores(kind, head, device.compute_capability()) {
        return Ok(None);
    }
    let of = scaled.map(|spec| format!("_{}_scale", spec.format_name())).unwrap_or_default();
    let name = format!("short_attention_mma{of}_{kind}");
    let bytes = sequences * SHORT_ATTENTION_TOKENS * heads * head * kind.width();
    let mut writes = vec![("y", bytes)];
    writes.extend(scaled.map(|_| ("scale", 4)));
    let args = KernelArgs::new([("x", 3 * bytes)], writes, (sequences, 0));
    let geometry = LaunchGeometry::new((sequences * heads).div_ceil(WARPS_PER_BLOCK), (32, WARPS_PER_BLOCK))?;
    let macros = tensor_core_macros(&name, kind, (heads, head), scaled);
    let kernel = CudaKernel::prepare(device, CudaSource::ShortAttentionMma, &name, macros, args, geometry)?;
    let kernel = if scaled.is_some() { kernel.with_workspace(8)? } else { kernel };
    let description = format!("{name}: tensor cores, a warp per head and sequence, {WARPS_PER_BLOCK} warps per block");
    Ok(Some(kernel.with_description(description)))
}

fn tensor_core_macros(
    name: &str,
    kind: Dtype,
    (heads, head): (usize, usize),
    scaled: Option<DynamicSpec>,
) -> Vec<String> {
    let mut macros = head_macros(name, kind, heads, head);
    macros.push(format!("WARPS={WARPS_PER_BLOCK}"));
    macros.extend(scaled.into_iter().flat_map(DynamicSpec::macros));
    macros
}

fn macros(name: &str, kind: Dtype, heads: usize, head: usize) -> Vec<String> {
    [head_macros(name, kind, heads, head), vec![format!("QUERIES_PER_WARP={QUERIES_PER_WARP}")]].concat()
}

/// Macros of all short-attention kernels.
pub(super) fn head_macros(name: &str, kind: Dtype, heads: usize, head: usize) -> Vec<String> {
    let mut macros = common_macros(name, kind, head_vector_width(kind, head));
    macros.push(format!("TOKENS={SHORT_ATTENTION_TOKENS}"));
    macros.push(format!("HEADS={heads}"));
    macros.push(format!("HEAD_DIM={head}"));
    macros.push(format!("SOFTMAX_SCALE={:e}f", (head as f64).sqrt().recip()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{layer_specs::tests::dynamic_specs, nvrtc::tests::assert_compiles};
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_dtype_and_head_width() {
        for kind in Dtype::ALL {
            for head in [1, 17, 128, 512] {
                assert_compiles(CudaSource::ShortAttention, &macros("short_attention", kind, 8, head));
                if supports_tensor_cores(kind, head, ComputeCapability::WGMMA) {
                    let scaled = dynamic_specs().filter(|spec| spec.kind == kind && spec.is_per_tensor());
                    for scaled in [None].into_iter().chain(scaled.map(Some)) {
                        let macros = tensor_core_macros("short_attention", kind, (8, head), scaled);
                        assert_compiles(CudaSource::ShortAttentionMma, &macros);
                    }
                }
            }
        }
    }
}
