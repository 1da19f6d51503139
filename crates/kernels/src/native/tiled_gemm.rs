//! GEMM by wgmma on Hopper with a packed weight in a tiled layout.

use std::sync::Arc;

use super::{
    ComputeCapability, CudaDevice, DeviceBuffer, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::{PackedFormat, PackedSpec},
    nvrtc::CudaSource,
    packed_gemm::SplitKWorkspace,
    packed_weight::weight_parts,
    sizes::{MULTIPROCESSORS, check_size},
    tma_tiles::TmaTiles,
};
use crate::format::ZeroPoint;
use crate::{Dtype, Format, PackedTensor};

/// Kernels that reorder a weight once and multiply it, and the split-K workspace.
#[derive(Debug)]
pub(super) struct TiledGemm {
    order: CudaKernel,
    ordered_bytes: usize,
    parts: usize,
    kernel: CudaKernel,
    split_k: Option<SplitKWorkspace>,
    pub(super) algorithm: String,
}

/// Weight rows and columns (k) per tile.
const WEIGHT_TILE: (usize, usize) = (128, 64);

impl TiledGemm {
    /// True if the kernel supports the specification: TMA needs 16-byte rows of x, 16 adjacent values must share a
    /// scale, and group scales must have the operand dtype.
    pub(super) fn is_supported(spec: PackedSpec, shape: LinearShape, capability: ComputeCapability) -> bool {
        let groups_fit =
            spec.weight.group().is_none_or(|group| group.is_multiple_of(WEIGHT_TILE.1) || matches!(group, 16 | 32));
        capability == ComputeCapability::WGMMA
            && spec.operand_dtype() != Dtype::F32
            && groups_fit
            && spec.supports_pair_dequantize()
            && shape.k.is_multiple_of(vector_width(spec.operand_dtype()))
    }

    /// Compiles for a supported specification and checked sizes.
    pub(super) fn new(
        device: &Arc<CudaDevice>,
        spec: PackedSpec,
        shape: LinearShape,
        added: bool,
    ) -> Result<Self, NativeError> {
        let LinearShape { m, k, n } = shape;
        let tile = TiledGemmTile::new(spec, shape);
        let tiles = check_size("the number of tiles", n.div_ceil(WEIGHT_TILE.0) * k.div_ceil(WEIGHT_TILE.1))?;
        let ordered_bytes = tiles * tile_bytes(spec.weight);
        let name = format!("tile_{}_weight", spec.weight.name());
        // Row scales are not reordered.
        let (mut reorder_reads, mut gemm_reads) = (spec.reads(shape), vec![("quantized values", ordered_bytes)]);
        if spec.weight.group().is_none() {
            gemm_reads.extend(reorder_reads.drain(1..));
        }
        let order = CudaKernel::prepare(
            device,
            CudaSource::TileWeight,
            &name,
            macros(&name, spec, shape, 1),
            KernelArgs { reads: reorder_reads, writes: vec![("tiles", ordered_bytes)], sizes: (n as u64, 0) },
            LaunchGeometry { blocks: tiles as u32, threads: (256, 1) },
        )?;

        let output_tiles = tile.output_tiles(shape);
        let blocks = check_size("the number of blocks", output_tiles * tile.splits)?;
        let parts = gemm_reads.len();
        let mut reads = vec![("x", shape.x_bytes(spec.operand_dtype()))];
        reads.extend(gemm_reads);
        reads.extend(spec.tensor_scale_reads());
        reads.extend(added.then(|| ("addend", shape.y_bytes(spec.kind))));
        let mut writes = vec![("y", shape.y_bytes(spec.kind))];
        let sums = blocks * WEIGHT_TILE.0 * tile.columns;
        let shared = (tile.splits > 1).then(|| SplitKWorkspace::new(device, sums, output_tiles)).transpose()?;
        writes.extend(shared.iter().flat_map(SplitKWorkspace::kernel_writes));
        let name = tile.name(spec);
        let extent = KernelArgs { reads, writes, sizes: (m as u64, n as u64) };
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (3 * 128, 1) };
        let macros = tile.macros(&name, spec, shape, added);
        let kernel = CudaKernel::prepare(device, CudaSource::WgmmaPackedWeightGemm, &name, macros, extent, geometry)?;
        let boxes =
            TmaTiles { input: 0, kind: spec.operand_dtype(), matrices: 1, rows: m, columns: k, height: tile.columns };
        Ok(Self {
            order,
            ordered_bytes,
            parts,
            kernel: kernel.with_tma_tiles(vec![boxes]).with_dynamic_smem(tile.shared_bytes(spec.weight))?,
            split_k: shared,
            algorithm: tile.describe(&name),
        })
    }

    /// Reorders a weight; its zero points are then interleaved with the values.
    pub(super) fn reorder(
        &self,
        device: &CudaDevice,
        weight: PackedTensor<DeviceBuffer>,
    ) -> Result<PackedTensor<DeviceBuffer>, NativeError> {
        let mut codes = device.allocate(self.ordered_bytes)?;
        let parts = weight_parts(weight.as_refs()).take(self.order.input_count());
        self.order.enqueue_all(parts, [&mut codes.memory])?;
        Ok(PackedTensor { codes, zeros: None, ..weight })
    }

    /// Parts of a reordered weight that a launch reads; group scales are interleaved with the values.
    pub(super) fn part_count(&self) -> usize {
        self.parts
    }

    /// Enqueues a launch on x, the parts of a reordered weight, and the addend.
    pub(super) fn enqueue<'x>(
        &mut self,
        inputs: impl IntoIterator<Item = &'x DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        SplitKWorkspace::enqueue(self.split_k.as_mut(), &self.kernel, inputs, y)
    }
}

/// Tile configuration of the tiled GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TiledGemmTile {
    /// Rows of x per block.
    columns: usize,
    /// Blocks that split k.
    splits: usize,
    /// Pipeline stages.
    stages: usize,
}

impl TiledGemmTile {
    /// Shared memory per block, less the static part of the kernel.
    const MAX_SMEM_BYTES: usize = 224 << 10;

    fn new(spec: PackedSpec, shape: LinearShape) -> Self {
        let columns = shape.m.next_power_of_two().clamp(16, 128);
        let stages = (Self::MAX_SMEM_BYTES / stage_bytes(spec.weight, columns)).min(12);
        let tile = Self { columns, splits: 1, stages };
        // At least four tiles per block; otherwise the reduction costs more than the split saves.
        let max_splits = (shape.k.div_ceil(WEIGHT_TILE.1) / 4).max(1);
        Self { splits: (MULTIPROCESSORS / tile.output_tiles(shape)).clamp(1, max_splits), ..tile }
    }

    /// Output tiles; each is computed by one block, or by several with split-K.
    fn output_tiles(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(WEIGHT_TILE.0) * shape.m.div_ceil(self.columns)
    }

    /// Kernel name with the parameters of the tile, which is all that a profiler shows.
    fn name(&self, spec: PackedSpec) -> String {
        format!(
            "{}_{}_product_tiled_{}x{}_k{}",
            spec.weight.name(),
            spec.kind,
            self.columns,
            WEIGHT_TILE.0,
            self.splits
        )
    }

    fn shared_bytes(&self, codes: Format) -> usize {
        self.stages * stage_bytes(codes, self.columns)
    }

    fn macros(&self, name: &str, spec: PackedSpec, shape: LinearShape, added: bool) -> Vec<String> {
        let Self { columns, splits, stages } = self;
        let width = if shape.n.is_multiple_of(vector_width(spec.kind)) { vector_width(spec.kind) } else { 1 };
        let mut macros = macros(name, spec, shape, width);
        macros.extend([format!("BLOCK_M={columns}"), format!("SPLIT_K={splits}")]);
        macros.extend([format!("STAGES={stages}")]);
        macros.extend(added.then(|| "ADDEND".into()));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { columns, splits, stages } = self;
        format!(
            "{name}: wgmma, tile of {columns} rows of x by {} weight rows, split-K over {splits} blocks, {stages} \
             stages of k={}",
            WEIGHT_TILE.0, WEIGHT_TILE.1
        )
    }
}

/// Bytes of a tile: values, and group scales and zero points, if any.
fn tile_bytes(codes: Format) -> usize {
    let arrays_per_group = if codes.zero == ZeroPoint::None { 1 } else { 2 };
    let scales = codes.group().map_or(0, |group| WEIGHT_TILE.1.div_ceil(group) * arrays_per_group);
    WEIGHT_TILE.0 * WEIGHT_TILE.1 * codes.element.bits() as usize / 8 + 2 * WEIGHT_TILE.0 * scales
}

/// Bytes of a stage: a weight tile and the matching tile of x.
fn stage_bytes(codes: Format, columns: usize) -> usize {
    tile_bytes(codes) + 2 * columns * WEIGHT_TILE.1
}

fn macros(name: &str, spec: PackedSpec, shape: LinearShape, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, spec.operand_dtype(), width);
    macros.extend(spec.macros(shape.k));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::layer_specs::tests::{formats, weight_only};
    use super::super::{
        nvrtc::tests::assert_compiles,
        packed_weight::tests::{all_specs, microscaling},
    };
    use super::*;

    fn supported_specs() -> impl Iterator<Item = PackedSpec> {
        let any = LinearShape { m: 16, k: 4096, n: 4096 };
        all_specs().into_iter().filter(move |spec| TiledGemm::is_supported(*spec, any, ComputeCapability::HOPPER))
    }

    #[test]
    fn support_needs_aligned_rows_and_groups() {
        let shape = LinearShape { m: 16, k: 4096, n: 4096 };
        let is_supported = |spec| TiledGemm::is_supported(spec, shape, ComputeCapability::HOPPER);
        let is_for = |kind, codes| is_supported(weight_only(kind, codes));
        let int4 = formats::int4;
        assert!(is_for(Dtype::Bf16, formats::int8(Dtype::Bf16)) && is_for(Dtype::F16, int4(64, Dtype::F16)));
        assert!(is_for(Dtype::Bf16, int4(32, Dtype::Bf16)) && !is_for(Dtype::Bf16, int4(96, Dtype::Bf16)));
        assert!(!is_for(Dtype::F16, int4(64, Dtype::Bf16)) && !is_for(Dtype::F32, formats::int8(Dtype::F32)));
        assert!(microscaling(Dtype::F32).into_iter().all(is_supported));
        let int8 = weight_only(Dtype::Bf16, formats::int8(Dtype::Bf16));
        assert!(!TiledGemm::is_supported(int8, LinearShape { k: 4100, ..shape }, ComputeCapability::HOPPER));
        assert!(!TiledGemm::is_supported(int8, shape, ComputeCapability { major: 10, minor: 0 }));
    }

    #[test]
    fn smem_holds_stages_and_epilogue() {
        for spec in supported_specs() {
            for m in [1, 17, 33, 65, 129, 5000] {
                for k in [8, 64, 1000, 4096, 28672] {
                    let shape = LinearShape { m, k, n: 1000 };
                    let tile = TiledGemmTile::new(spec, shape);
                    assert!(tile.shared_bytes(spec.weight) <= TiledGemmTile::MAX_SMEM_BYTES, "{tile:?}");
                    assert!(tile.shared_bytes(spec.weight) >= 4 * tile.columns * (WEIGHT_TILE.0 + 4), "{tile:?}");
                    assert!(tile.splits <= k.div_ceil(WEIGHT_TILE.1), "{tile:?}");
                    assert!(tile.stages > 2, "{tile:?}");
                }
            }
        }
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_spec_and_tile() {
        for (at, spec) in supported_specs().enumerate() {
            for m in [1, 20, 64, 500].into_iter().skip(at % 2).step_by(2) {
                let shape = LinearShape { m, k: 4096 - 8 * at, n: 4096 - at };
                let tile = TiledGemmTile::new(spec, shape);
                assert_compiles(CudaSource::WgmmaPackedWeightGemm, &tile.macros("product", spec, shape, at % 2 == 0));
            }
            let shape = LinearShape { m: 1, k: 129, n: 3 };
            assert_compiles(CudaSource::TileWeight, &macros("order", spec, shape, 1));
        }
    }
}
