//! GEMM by wgmma on Hopper with a packed weight in a tiled layout.

use std::sync::Arc;

use super::{
    ComputeCapability, CudaDevice, DeviceBuffer, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::{PackedFormat, PackedSpec},
    nvrtc::CudaSource,
    packed_weight::weight_parts,
    sizes::{MULTIPROCESSORS, check_size},
    tma_tiles::TmaTiles,
};
use crate::format::ZeroPoint;
use crate::{Dtype, Format, PackedTensor};

/// Kernels that reorder a weight once and multiply it.
#[derive(Debug)]
pub(super) struct TiledGemm {
    order: CudaKernel,
    ordered_bytes: usize,
    parts: usize,
    kernel: CudaKernel,
    /// Name of the layout, which depends on the tiles of a block.
    pub(super) layout: &'static str,
    pub(super) algorithm: String,
}

/// Weight rows and columns (k) per tile.
const WEIGHT_TILE: (usize, usize) = (64, 64);
/// Threads of a warp group.
const GROUP_THREADS: usize = 128;

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
        let tile = TiledGemmTile::fastest(spec, shape);
        let weight_tiles = n.div_ceil(tile.weight_rows()) * tile.weight_tiles() * k.div_ceil(WEIGHT_TILE.1);
        let weight_tiles = check_size("the number of tiles", weight_tiles)?;
        let ordered_bytes = weight_tiles * tile_bytes(spec.weight);
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
            tile.reorder_macros(&name, spec),
            KernelArgs { reads: reorder_reads, writes: vec![("tiles", ordered_bytes)], sizes: (n as u64, k as u64) },
            LaunchGeometry::new(weight_tiles, (GROUP_THREADS, 1))?,
        )?;

        let parts = gemm_reads.len();
        let mut reads = vec![("x", shape.x_bytes(spec.operand_dtype()))];
        reads.extend(gemm_reads);
        reads.extend(spec.tensor_scale_reads());
        reads.extend(added.then(|| ("addend", shape.y_bytes(spec.kind))));
        let writes = vec![("y", shape.y_bytes(spec.kind))];
        let name = tile.name(spec);
        let extent = KernelArgs { reads, writes, sizes: (m as u64, n as u64) };
        let geometry = LaunchGeometry::new(tile.blocks(shape), ((1 + tile.consumers) * GROUP_THREADS, 1))?;
        let macros = tile.macros(&name, spec, shape, added);
        let kernel = CudaKernel::prepare(device, CudaSource::WgmmaPackedWeightGemm, &name, macros, extent, geometry)?;
        let boxes = TmaTiles {
            input: 0,
            kind: spec.operand_dtype(),
            matrices: 1,
            rows: m,
            columns: k,
            height: tile.rows / tile.sharing,
        };
        Ok(Self {
            order,
            ordered_bytes,
            parts,
            kernel: kernel
                .with_third_size(k)
                .with_tma_tiles(vec![boxes])
                .with_dynamic_smem(tile.smem_bytes(spec.weight))?,
            layout: tile.layout(),
            algorithm: tile.describe(&name, spec.weight),
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
        &self,
        inputs: impl IntoIterator<Item = &'x DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        self.kernel.enqueue_all(inputs, [y])
    }
}

/// Tile configuration of the tiled GEMM; the comment of the kernel describes the parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TiledGemmTile {
    /// Rows of x per block (`BLOCK_M`).
    rows: usize,
    /// Consumer warp groups.
    consumers: usize,
    /// Weight tiles per consumer warp group.
    fragments: usize,
    /// Blocks of a cluster that share rows of x (`CLUSTER_N`).
    sharing: usize,
    /// Blocks of a cluster that split k.
    splits: usize,
}

impl TiledGemmTile {
    /// Shared memory per block, less the static part of the kernel.
    const MAX_SMEM_BYTES: usize = 226 << 10;
    const MIN_STAGES: usize = 3;
    const MAX_STAGES: usize = 12;
    const ROWS: [usize; 9] = [8, 16, 32, 64, 96, 128, 160, 192, 256];
    /// Maximum blocks of a cluster.
    const MAX_CLUSTER: usize = 8;
    /// Clusters of 1 to 8 blocks that are resident at the same time. The multiprocessors of a cluster belong to one part
    /// of the GPU (GPC), so that large clusters leave some of them idle. Measured on an H200
    /// (`cuOccupancyMaxActiveClusters`).
    const RESIDENT_CLUSTERS: [usize; Self::MAX_CLUSTER] =
        [MULTIPROCESSORS, MULTIPROCESSORS / 2, 39, 30, 22, 17, 15, 15];
    /// Minimum steps along k of a block with split-K.
    const MIN_SPLIT_STEPS: usize = 3;

    /// The configuration with the lowest estimated time.
    fn fastest(spec: PackedSpec, shape: LinearShape) -> Self {
        Self::candidates(spec, shape)
            .map(|tile| (tile.estimated_nanos(spec.weight, shape), tile))
            .min_by(|(first, _), (second, _)| first.total_cmp(second))
            .map(|(_, tile)| tile)
            .expect("a tile of 8 rows fits every format")
    }

    fn candidates(spec: PackedSpec, shape: LinearShape) -> impl Iterator<Item = Self> {
        // More than twice the rows of x would only add work.
        let rows = Self::ROWS.into_iter().filter(move |rows| *rows == Self::ROWS[0] || rows / 2 < shape.m);
        let consumers = move |rows| (1..=3).map(move |consumers| (rows, consumers));
        let fragments = |(rows, consumers)| [1, 2].map(|fragments| (rows, consumers, fragments));
        let clusters = |(rows, consumers, fragments)| {
            let splits = move |sharing| (1..=Self::MAX_CLUSTER / sharing).map(move |splits| (sharing, splits));
            [1, 2].into_iter().flat_map(splits).map(move |(sharing, splits)| Self {
                rows,
                consumers,
                fragments,
                sharing,
                splits,
            })
        };
        rows.flat_map(consumers)
            .flat_map(fragments)
            .flat_map(clusters)
            .filter(move |tile| tile.fits(spec.weight) && tile.divides(shape))
    }

    /// True if registers and shared memory suffice.
    fn fits(&self, codes: Format) -> bool {
        // Three consumer groups have 160 registers per thread, fewer groups 240; the sums take rows / 2 per fragment.
        let max_sums = if self.consumers == 3 { 80 } else { 128 };
        // TMA boxes have whole groups of eight rows.
        let boxes_fit = (self.rows / self.sharing).is_multiple_of(8);
        let partial_bytes = 4 * self.rows * self.weight_rows();
        boxes_fit
            && self.fragments * self.rows / 2 <= max_sums
            && self.stages(codes) >= Self::MIN_STAGES
            && (self.splits == 1 || partial_bytes <= self.stages(codes) * self.stage_bytes(codes))
    }

    /// True if a split is worth its reduction, and all clusters with split-K are resident.
    fn divides(&self, shape: LinearShape) -> bool {
        let steps = shape.k.div_ceil(WEIGHT_TILE.1) / self.splits;
        self.splits == 1
            || steps >= Self::MIN_SPLIT_STEPS && self.clusters(shape) <= Self::RESIDENT_CLUSTERS[self.cluster() - 1]
    }

    /// Estimated time on an H200. The constants were fitted to 440 measured pairs of configuration and shape, for int8 and
    /// int4 weights.
    fn estimated_nanos(&self, codes: Format, shape: LinearShape) -> f64 {
        const CLOCK_GHZ: f64 = 1.98;
        const LAUNCH_CYCLES: f64 = 5964.0;
        // FLOP per nanosecond at the power limit, and the relative energy of dequantization.
        const POWER_LIMIT: f64 = 931e3;
        const DEQUANTIZE_ENERGY: f64 = 0.13 * 128.0;
        let as_f64 = |count: usize| count as f64;
        let (tiles, rows, splits) = (as_f64(self.weight_tiles()), as_f64(self.rows), as_f64(self.splits));
        let clusters = self.clusters(shape);
        let waves = as_f64(clusters.div_ceil(Self::RESIDENT_CLUSTERS[self.cluster() - 1]));
        let blocks = as_f64((clusters * self.cluster()).min(MULTIPROCESSORS));
        let row_tiles = as_f64(shape.m.div_ceil(self.rows));

        // Cycles of a step along k: the longest of arithmetic, memory and L2 cache (in bytes per cycle), and constants.
        let weight_bytes = as_f64(self.weight_tiles() * tile_bytes(codes));
        let multiply = tiles * if self.uses_wgmma() { (1.94 * rows).max(248.0) + 20.6 } else { 124.0 + 4.2 * rows };
        // A single warp group cannot dequantize while another one multiplies.
        let serial = if self.consumers == 1 { as_f64(self.fragments) * (225.0 + 0.97 * rows) } else { 0.0 };
        // Blocks with the same weights read them from memory once.
        let memory = weight_bytes * blocks / row_tiles.min(as_f64(clusters)) / 2145.0;
        let l2 =
            (as_f64(self.x_bytes()) / as_f64(self.sharing) + weight_bytes) * blocks / as_f64(MULTIPROCESSORS) / 68.0;
        let sharing = if self.sharing > 1 { 32.0 } else { 0.0 };
        let step = multiply.max(serial).max(memory).max(l2) + 127.0 + sharing;

        let steps = as_f64(shape.k.div_ceil(WEIGHT_TILE.1).div_ceil(self.splits));
        // Distributed shared memory limits the reduction.
        let reduction = 2667.0 + rows * tiles * 34.6 * (splits - 1.0) / splits;
        let epilogue = if self.splits > 1 { reduction } else { rows * tiles * 13.5 };
        let cycles = waves * (steps * step + epilogue) + LAUNCH_CYCLES;
        let flops = 2.0 * row_tiles * rows * as_f64(shape.k) * as_f64(shape.n);
        let at_power_limit = flops / POWER_LIMIT * (1.0 + DEQUANTIZE_ENERGY / rows) + LAUNCH_CYCLES / CLOCK_GHZ;
        // A smooth maximum of the two limits.
        ((cycles / CLOCK_GHZ).powi(8) + at_power_limit.powi(8)).powf(1.0 / 8.0)
    }

    /// True if rows of x suffice for wgmma; the kernel uses mma for fewer.
    fn uses_wgmma(&self) -> bool {
        self.rows > 32
    }

    fn weight_tiles(&self) -> usize {
        self.consumers * self.fragments
    }

    /// Weight rows per block.
    fn weight_rows(&self) -> usize {
        self.weight_tiles() * WEIGHT_TILE.0
    }

    /// Blocks of a cluster.
    fn cluster(&self) -> usize {
        self.sharing * self.splits
    }

    /// Clusters that together compute every output tile once.
    fn clusters(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(self.weight_rows()).div_ceil(self.sharing) * shape.m.div_ceil(self.rows)
    }

    /// Blocks of a launch. With split-K a cluster computes one output tile, otherwise as many as necessary.
    fn blocks(&self, shape: LinearShape) -> usize {
        let resident = if self.splits == 1 { MULTIPROCESSORS / self.sharing } else { usize::MAX };
        self.clusters(shape).min(resident) * self.cluster()
    }

    fn x_bytes(&self) -> usize {
        2 * self.rows * WEIGHT_TILE.1
    }

    /// Bytes of a stage: weight tiles and the matching tile of x.
    fn stage_bytes(&self, codes: Format) -> usize {
        self.weight_tiles() * tile_bytes(codes) + self.x_bytes()
    }

    /// Bytes in which each consumer warp group stages two parts of y.
    fn staging_bytes(&self) -> usize {
        self.consumers * 2 * (32 / self.fragments) * (2 * self.fragments * WEIGHT_TILE.0 + 16)
    }

    fn stages(&self, codes: Format) -> usize {
        ((Self::MAX_SMEM_BYTES - self.staging_bytes()) / self.stage_bytes(codes)).min(Self::MAX_STAGES)
    }

    fn smem_bytes(&self, codes: Format) -> usize {
        self.stages(codes) * self.stage_bytes(codes) + self.staging_bytes()
    }

    /// Name of the layout of a weight.
    fn layout(&self) -> &'static str {
        match self.weight_tiles() {
            1 => "tiled by 64 rows",
            2 => "tiled by 128 rows",
            3 => "tiled by 192 rows",
            4 => "tiled by 256 rows",
            _ => "tiled by 384 rows",
        }
    }

    /// Kernel name with the parameters of the tile, which is all that a profiler shows.
    fn name(&self, spec: PackedSpec) -> String {
        format!(
            "{}_{}_product_tiled_{}x{}_c{}_k{}",
            spec.weight.name(),
            spec.kind,
            self.rows,
            self.weight_rows(),
            self.sharing,
            self.splits
        )
    }

    fn macros(&self, name: &str, spec: PackedSpec, shape: LinearShape, added: bool) -> Vec<String> {
        let Self { rows, consumers, fragments, sharing, splits } = self;
        let width = if shape.n.is_multiple_of(vector_width(spec.kind)) { vector_width(spec.kind) } else { 1 };
        let mut macros = macros(name, spec, width);
        macros.extend([
            format!("BLOCK_M={rows}"),
            format!("CONSUMERS={consumers}"),
            format!("FRAGMENTS_N={fragments}"),
        ]);
        macros.extend([format!("CLUSTER_N={sharing}"), format!("SPLIT_K={splits}")]);
        macros.extend([format!("STAGES={}", self.stages(spec.weight))]);
        macros.extend(added.then(|| "ADDEND".into()));
        macros
    }

    fn reorder_macros(&self, name: &str, spec: PackedSpec) -> Vec<String> {
        let mut macros = macros(name, spec, 1);
        macros.push(format!("BLOCK_TILES={}", self.weight_tiles()));
        macros
    }

    fn describe(&self, name: &str, codes: Format) -> String {
        let instruction = if self.uses_wgmma() { "wgmma" } else { "mma" };
        format!(
            "{name}: {instruction}, tile of {} rows of x by {} weight rows, {} blocks share rows of x, split-K over {} \
             blocks, {} stages of k={}",
            self.rows,
            self.weight_rows(),
            self.sharing,
            self.splits,
            self.stages(codes),
            WEIGHT_TILE.1
        )
    }
}

/// Bytes of a tile: values, and group scales and zero points, if any.
fn tile_bytes(codes: Format) -> usize {
    let arrays_per_group = if codes.zero == ZeroPoint::None { 1 } else { 2 };
    let scales = codes.group().map_or(0, |group| WEIGHT_TILE.1.div_ceil(group) * arrays_per_group);
    WEIGHT_TILE.0 * WEIGHT_TILE.1 * codes.element.bits() as usize / 8 + 2 * WEIGHT_TILE.0 * scales
}

fn macros(name: &str, spec: PackedSpec, width: usize) -> Vec<String> {
    let mut macros = common_macros(name, spec.operand_dtype(), width);
    macros.extend(spec.macros());
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

    fn tile(spec: PackedSpec, m: usize, k: usize, n: usize) -> TiledGemmTile {
        TiledGemmTile::fastest(spec, LinearShape { m, k, n })
    }

    #[test]
    fn smem_holds_stages_and_epilogue() {
        for spec in supported_specs() {
            for shape in [1, 17, 33, 65, 129, 5000].map(|m| LinearShape { m, k: 8 * m, n: 1000 }) {
                for tile in TiledGemmTile::candidates(spec, shape) {
                    assert!(tile.smem_bytes(spec.weight) <= TiledGemmTile::MAX_SMEM_BYTES, "{tile:?}");
                    assert!(tile.splits <= shape.k.div_ceil(WEIGHT_TILE.1), "{tile:?}");
                    assert!(tile.blocks(shape).is_multiple_of(tile.cluster()), "{tile:?}");
                }
            }
        }
    }

    #[test]
    fn tiles_fill_the_multiprocessors() {
        let int8 = weight_only(Dtype::Bf16, formats::int8(Dtype::Bf16));
        for (m, k, n) in
            [(16, 8192, 10240), (64, 14336, 4096), (256, 4096, 6144), (1024, 7168, 2112), (128, 5120, 3456)]
        {
            let found = tile(int8, m, k, n);
            let shape = LinearShape { m, k, n };
            let waves = found.blocks(shape).div_ceil(MULTIPROCESSORS) * MULTIPROCESSORS;
            assert!(found.blocks(shape) * 10 >= waves * 6, "{m} {k} {n}: {found:?}");
        }
        // Few rows use mma, many rows large tiles.
        assert!(!tile(int8, 16, 8192, 8192).uses_wgmma() && tile(int8, 64, 8192, 8192).uses_wgmma());
        assert_eq!(tile(int8, 4096, 8192, 8192).rows, 256);
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_spec_and_tile() {
        for (at, spec) in supported_specs().enumerate() {
            for (m, n) in [(1, 4096), (20, 4096), (64, 1000), (500, 20000)].into_iter().skip(at % 2).step_by(2) {
                let shape = LinearShape { m, k: 4096 - 8 * at, n: n - at };
                let tile = TiledGemmTile::fastest(spec, shape);
                assert_compiles(CudaSource::WgmmaPackedWeightGemm, &tile.macros("product", spec, shape, at % 2 == 0));
                assert_compiles(CudaSource::TileWeight, &tile.reorder_macros("order", spec));
            }
        }
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_tile() {
        let specs = [formats::int8(Dtype::Bf16), formats::int4(128, Dtype::Bf16)];
        for (spec, k) in specs.map(|format| weight_only(Dtype::Bf16, format)).into_iter().zip([4096, 14336]) {
            let shape = LinearShape { m: 512, k, n: 1000 };
            for tile in TiledGemmTile::candidates(spec, shape).step_by(7) {
                assert_compiles(CudaSource::WgmmaPackedWeightGemm, &tile.macros("product", spec, shape, false));
            }
        }
    }
}
