//! Fused kernel: short attention with row-wise quantization of its output.

use super::{
    ComputeCapability, CudaDevice, CudaKernel, NativeError, SHORT_ATTENTION_TOKENS,
    kernel::{KernelArgs, LaunchGeometry},
    layer_specs::DynamicSpec,
    nvrtc::CudaSource,
    short_attention,
};

/// Largest supported head width. At this width the fragments of two tokens take half of a thread's registers.
const MAX_HEAD_WIDTH: usize = 512;
const MAX_HEADS: usize = 8;

/// Compiles the kernel for an output of `rows` rows and `columns` columns; `None` if unsupported.
pub(super) fn kernel(
    device: &CudaDevice,
    spec: DynamicSpec,
    name: &str,
    (rows, columns): (usize, usize),
    heads: usize,
    filled: (usize, usize),
) -> Result<Option<CudaKernel>, NativeError> {
    let head = columns / heads;
    if !is_supported(spec, heads, head, device.compute_capability()) {
        return Ok(None);
    }
    let x = ("x", 3 * rows * columns * spec.kind.width());
    let writes = [("quantized values", filled.0 * filled.1), ("scales", 4 * rows)];
    let args = KernelArgs::new([x], writes, (rows, columns));
    let blocks = (rows / SHORT_ATTENTION_TOKENS).min(device.multiprocessors()? * (MAX_HEADS / heads));
    let geometry = LaunchGeometry::new(blocks, (32, heads))?;
    let macros = macros(name, spec, heads, head, filled.1);
    let kernel = CudaKernel::prepare(device, CudaSource::ShortAttentionQuantize, name, macros, args, geometry)?;
    let description = format!("{name}: tensor cores, {blocks} persistent blocks, a warp per head");
    Ok(Some(kernel.with_description(description)))
}

fn is_supported(spec: DynamicSpec, heads: usize, head: usize, capability: ComputeCapability) -> bool {
    !spec.is_per_tensor()
        && heads <= MAX_HEADS
        && head <= MAX_HEAD_WIDTH
        && short_attention::supports_tensor_cores(spec.kind, head, capability)
}

fn macros(name: &str, spec: DynamicSpec, heads: usize, head: usize, stride: usize) -> Vec<String> {
    let mut macros = short_attention::head_macros(name, spec.kind, heads, head);
    macros.push(format!("STRIDE={stride}ull"));
    macros.extend(spec.macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::{layer_specs::tests::dynamic_specs, nvrtc::tests::assert_compiles};
    use super::*;
    use crate::{Dtype, Prologue};

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_supported_spec() {
        for spec in dynamic_specs().filter(|spec| spec.prologue == Prologue::None) {
            let is_for = |heads, head| is_supported(spec, heads, head, ComputeCapability::WGMMA);
            let halves = spec.kind != Dtype::F32 && !spec.is_per_tensor();
            assert_eq!(is_for(8, 512), halves, "{spec:?}");
            assert!(!is_for(9, 32) && !is_for(8, 544) && !is_for(8, 40), "{spec:?}");
            for (heads, head) in [(8, 512), (1, 32)].into_iter().filter(|&(heads, head)| is_for(heads, head)) {
                assert_compiles(
                    CudaSource::ShortAttentionQuantize,
                    &macros("attended", spec, heads, head, heads * head),
                );
            }
        }
    }
}
