//! Attention for any sequence length.

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
    sizes::check_size,
    tma_tiles::TmaTiles,
};
use crate::Dtype;

/// Sizes and mask of an attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionSpec {
    /// Heads of all sequences.
    pub heads: usize,
    /// Positions per sequence.
    pub positions: usize,
    /// Head width: a multiple of 8, up to 128.
    pub width: usize,
    /// True for a causal mask.
    pub causal: bool,
}

/// Query rows per block, and keys per tile.
const TILE: usize = 128;
/// Tiles in shared memory: one of q, two stages each of k and v.
const SMEM_TILES: usize = 5;
/// Threads of a block: one producer warp group and two consumer warp groups.
const THREADS: usize = 3 * 128;

impl CudaKernel {
    /// Attention y = softmax(q kᵀ / √width) v for each head, in one pass on the tensor cores of Hopper (as in
    /// FlashAttention-3): scores are never written to memory. Inputs: q, k, v; output: y.
    ///
    /// Accumulators and softmax are in f32; probabilities are rounded to the dtype of v. Each of the four matrices has
    /// the positions of a head as rows, head after head.
    pub fn attention(device: &CudaDevice, kind: Dtype, spec: AttentionSpec) -> Result<Self, NativeError> {
        let AttentionSpec { heads, positions, width, causal } = spec;
        if kind == Dtype::F32 {
            return Err(NativeError::UnsupportedDtype { what: "tensor-core attention", kind });
        }
        if !width.is_multiple_of(vector_width(kind)) || !(1..=TILE).contains(&width) {
            return Err(NativeError::HeadWidth { width });
        }
        check_size("the number of positions", positions)?;
        check_size("the number of heads of all sequences", heads)?;
        let geometry = LaunchGeometry::new(heads.saturating_mul(positions.div_ceil(TILE)), (THREADS, 1))?;
        let bytes = heads * positions * width * kind.width();
        let args = KernelArgs::new([("q", bytes), ("k", bytes), ("v", bytes)], [("y", bytes)], (positions, 0));
        let name = format!("attention_{kind}");
        let macros = macros(&name, kind, width, causal);
        let kernel = Self::prepare(device, CudaSource::Attention, &name, macros, args, geometry)?;
        let boxes = |input| TmaTiles { input, kind, matrices: heads, rows: positions, columns: width, height: TILE };
        Ok(kernel
            .with_tma_tiles([0, 1, 2].map(boxes).to_vec())
            .with_dynamic_smem(SMEM_TILES * TILE * padded_width(width) * kind.width())?
            .with_description(format!("{name}: wgmma, {TILE} query rows per block, tiles of {TILE} keys")))
    }
}

/// Head width in shared memory.
fn padded_width(width: usize) -> usize {
    width.next_multiple_of(64)
}

fn macros(name: &str, kind: Dtype, width: usize, causal: bool) -> Vec<String> {
    let mut macros = common_macros(name, kind, vector_width(kind));
    macros.push(format!("HEAD_DIM={width}"));
    macros.push(format!("PADDED_HEAD_DIM={}", padded_width(width)));
    macros.push(format!("CAUSAL={}", u8::from(causal)));
    macros.push(format!("SOFTMAX_SCALE={:e}f", (width as f64).sqrt().recip()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_width_and_mask() {
        for kind in [Dtype::F16, Dtype::Bf16] {
            for width in [8, 64, 72, 128] {
                for causal in [false, true] {
                    assert_compiles(CudaSource::Attention, &macros("attention", kind, width, causal));
                }
            }
        }
    }
}
