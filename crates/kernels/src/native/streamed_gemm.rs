//! GEMM of a few rows with a large int4 weight that is streamed through shared memory.

use std::sync::Arc;

use super::{
    ComputeCapability, CudaDevice, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::{PackedFormat, PackedSpec},
    nvrtc::CudaSource,
    sizes::MULTIPROCESSORS,
};
use crate::format::ZeroPoint;
use crate::{Dtype, Element, Format};

/// Compiled GEMM kernel.
#[derive(Debug)]
pub(super) struct StreamedGemm {
    kernel: CudaKernel,
    pub(super) algorithm: String,
}

/// Tile configuration of the streamed GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamedGemmTile {
    /// Consumer warps per block.
    warps: usize,
    /// Resident blocks per multiprocessor.
    blocks_per_sm: usize,
    /// Pipeline stages.
    stages: usize,
    shared_bytes: usize,
}

/// Weight rows per tile.
const TILE_ROWS: usize = 16;
/// Values that share a scale; four threads process one chunk at a time.
const CHUNK_VALUES: usize = 128;
/// Chunks of a row per warp and stage.
const CHUNKS_PER_WARP: usize = 4;

impl StreamedGemmTile {
    /// Shared memory per multiprocessor, and reserved shared memory per block.
    const SMEM_PER_SM: usize = 228 << 10;
    const RESERVED_SMEM: usize = (1 << 10) + 256;

    /// Returns a configuration if this kernel is supported and was faster on an H200 than the kernels for smaller weights,
    /// [`PackedGemm`](super::packed_gemm::PackedGemm) and [`gemv`](super::gemv).
    pub(super) fn new(spec: PackedSpec, shape: LinearShape, capability: ComputeCapability) -> Option<Self> {
        let LinearShape { m, k, n } = shape;
        let min_values = if m == 1 { 1 << 25 } else { 1 << 26 };
        let is_for = capability == ComputeCapability::WGMMA
            && m <= 8
            && n.saturating_mul(k) >= min_values
            && spec.operand_dtype() == spec.kind
            && spec.kind != Dtype::F32
            && is_int4_in_chunks(spec.weight)
            && n.is_multiple_of(TILE_ROWS)
            && n / TILE_ROWS >= MULTIPROCESSORS;
        // 1 KiB pieces and two resident blocks, one of which multiplies while the other waits; or longer pieces and one
        // block. Fewer stages would not saturate the memory.
        let options = [(4, 2, 4), (8, 1, 3), (7, 1, 3), (6, 1, 3), (5, 1, 3)];
        let mut fitting = options.into_iter().filter_map(|(warps, at_once, least)| {
            let whole = k.is_multiple_of(CHUNK_VALUES * CHUNKS_PER_WARP * warps);
            let available = Self::SMEM_PER_SM / at_once - Self::RESERVED_SMEM;
            let tiles = (least..=12).rev().map(|stages| Self::with_stages(spec, shape, warps, at_once, stages));
            whole.then(|| tiles.into_iter().find(|tile| tile.shared_bytes <= available)).flatten()
        });
        is_for.then(|| fitting.next()).flatten()
    }

    fn with_stages(spec: PackedSpec, shape: LinearShape, warps: usize, blocks_per_sm: usize, stages: usize) -> Self {
        let LinearShape { m, k, .. } = shape;
        let (chunks, stage_chunks) = (k / CHUNK_VALUES, CHUNKS_PER_WARP * warps);
        let parts = chunks / stage_chunks;
        let row = stage_chunks * CHUNK_VALUES / 2;
        let pitch = if row % 128 == 64 { row } else { row + 64 };
        let kinds = if spec.weight.zero == ZeroPoint::None { 1 } else { 2 };
        let slots = stages.div_ceil(parts) + usize::from(parts > 1);
        let x_bytes_total = m * k * spec.kind.width() + 4 * chunks * m;
        let reduction_bytes = 2 * 4 * warps * m * TILE_ROWS;
        let shared_bytes =
            stages * TILE_ROWS * pitch + slots * kinds * TILE_ROWS * chunks * 2 + x_bytes_total + reduction_bytes;
        Self { warps, blocks_per_sm, stages, shared_bytes }
    }

    fn macros(&self, name: &str, spec: PackedSpec, shape: LinearShape, added: bool) -> Vec<String> {
        let Self { warps, blocks_per_sm: at_once, stages, .. } = self;
        let mut macros = common_macros(name, spec.operand_dtype(), vector_width(spec.operand_dtype()));
        macros.extend(spec.macros_for_k(shape.k));
        macros.extend([format!("M={}", shape.m), format!("CHUNKS_PER_WARP={CHUNKS_PER_WARP}")]);
        macros.extend([format!("CONSUMER_WARPS={warps}"), format!("STAGES={stages}"), format!("MIN_BLOCKS={at_once}")]);
        macros.extend(added.then(|| "ADDEND".into()));
        macros
    }
}

/// True for int4 or uint4 in groups of one chunk, with 16-bit scales and zero points.
fn is_int4_in_chunks(codes: Format) -> bool {
    let of_two_bytes = |element| matches!(element, Element::Float(Dtype::F16 | Dtype::Bf16));
    let zeros_fit = match codes.zero {
        ZeroPoint::None => true,
        ZeroPoint::BeforeScale(zero) | ZeroPoint::AfterScale(zero) => of_two_bytes(zero),
    };
    matches!(codes.element, Element::Signed(4) | Element::Unsigned(4))
        && codes.group() == Some(CHUNK_VALUES)
        && of_two_bytes(codes.scale)
        && zeros_fit
}

impl StreamedGemm {
    /// Compiles for a checked specification, checked sizes and a configuration.
    pub(super) fn new(
        device: &Arc<CudaDevice>,
        spec: PackedSpec,
        shape: LinearShape,
        tile: StreamedGemmTile,
        added: bool,
    ) -> Result<Self, NativeError> {
        let LinearShape { m, n, .. } = shape;
        let StreamedGemmTile { warps, blocks_per_sm: at_once, stages, .. } = tile;
        let name = format!("{}_{}_product_streamed_{m}x{TILE_ROWS}_k{warps}", spec.weight.name(), spec.kind);
        let mut reads = vec![("x", shape.x_bytes(spec.kind))];
        reads.extend(spec.reads(shape));
        reads.extend(added.then(|| ("addend", shape.y_bytes(spec.kind))));
        let writes = vec![("y", shape.y_bytes(spec.kind))];
        let geometry = LaunchGeometry {
            blocks: (n / TILE_ROWS).min(at_once * MULTIPROCESSORS) as u32,
            threads: (32 * (warps as u32 + 1), 1),
        };
        let kernel = CudaKernel::prepare(
            device,
            CudaSource::PersistentInt4WeightGemm,
            &name,
            tile.macros(&name, spec, shape, added),
            KernelArgs { reads, writes, sizes: (m as u64, n as u64) },
            geometry,
        )?;
        let algorithm = format!(
            "{name}: tensor cores, {at_once} blocks per multiprocessor, tiles of {TILE_ROWS} weight rows, split-K over {warps} \
             warps, {stages} stages"
        );
        Ok(Self { kernel: kernel.with_dynamic_smem(tile.shared_bytes)?, algorithm })
    }

    /// Enqueues a launch on x, the parts of the weight, and the addend.
    pub(super) fn enqueue<'x>(
        &self,
        inputs: impl IntoIterator<Item = &'x DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        self.kernel.enqueue_all(inputs, [y])
    }
}

#[cfg(test)]
mod tests {
    use super::super::layer_specs::tests::{formats, weight_only};
    use super::super::{nvrtc::tests::assert_compiles, packed_weight::tests::all_specs};
    use super::*;

    fn cut(m: usize, k: usize, n: usize) -> Option<StreamedGemmTile> {
        let spec = weight_only(Dtype::Bf16, formats::int4(CHUNK_VALUES, Dtype::Bf16));
        StreamedGemmTile::new(spec, LinearShape { m, k, n }, ComputeCapability::HOPPER)
    }

    #[test]
    fn few_rows_by_wide_weights_are_streamed() {
        let options = |m, k, n| cut(m, k, n).map(|tile| (tile.warps, tile.blocks_per_sm, tile.stages));
        assert_eq!(options(1, 8192, 28672), Some((4, 2, 4)));
        assert_eq!([options(4, 8192, 28672), options(1, 28672, 8192)], [Some((8, 1, 4)); 2]);
        assert_eq!((options(1, 5120, 7168), options(1, 3584, 9408)), (Some((5, 1, 9)), Some((7, 1, 7))));
        // x exceeds the shared memory; few weight rows; partial tiles and stages; small weights; many rows.
        let refused =
            [(8, 8192, 28672), (1, 16384, 2096), (1, 8192, 4104), (1, 8320, 4096), (1, 4096, 4096), (9, 8192, 28672)];
        assert!(refused.into_iter().all(|(m, k, n)| cut(m, k, n).is_none()));
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn resident_blocks_fit_and_source_compiles() {
        for m in 1..=8 {
            for k in (1..=64).map(|at| 512 * at) {
                let Some(tile) = cut(m, k, 1 << 17) else { continue };
                assert!(
                    tile.blocks_per_sm * (tile.shared_bytes + StreamedGemmTile::RESERVED_SMEM)
                        <= StreamedGemmTile::SMEM_PER_SM,
                    "{m} {k} {tile:?}"
                );
                assert!(
                    2 * 8 * tile.stages <= 256 && 32 * (tile.warps + 1) * tile.blocks_per_sm <= 512,
                    "{m} {k} {tile:?}"
                );
            }
        }
        let forms: Vec<_> = all_specs().into_iter().filter(|spec| is_int4_in_chunks(spec.weight)).collect();
        for (at, spec) in forms.into_iter().enumerate() {
            for (m, k) in [(1, 4096), (3, 8192), (5, 7168)] {
                let shape = LinearShape { m, k, n: 1 << 17 };
                let Some(tile) = StreamedGemmTile::new(spec, shape, ComputeCapability::HOPPER) else { continue };
                assert_compiles(
                    CudaSource::PersistentInt4WeightGemm,
                    &tile.macros("product", spec, shape, at % 2 == 0),
                );
            }
        }
    }
}
