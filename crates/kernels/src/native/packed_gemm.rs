//! GEMM of few rows with a packed weight, dequantized in registers.

use std::sync::Arc;

use super::{
    ComputeCapability, CudaDevice, LinearShape, NativeError,
    driver::DeviceMemory,
    gemv::{self, GemvMatrix},
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    layer_specs::{PackedFormat, PackedSpec},
    nvrtc::CudaSource,
    sizes::{MULTIPROCESSORS, check_size},
};
use crate::Dtype;

/// Compiled kernel and its split-K workspace.
#[derive(Debug)]
pub(super) struct PackedGemm {
    kernel: CudaKernel,
    shared: Option<SplitKWorkspace>,
    pub(super) algorithm: String,
}

/// Macro that enables the addend.
const ADDED: &str = "ADDEND";

/// Split-K partial sums, and arrival counters per output tile.
#[derive(Debug)]
pub(super) struct SplitKWorkspace {
    partials: DeviceMemory,
    arrivals: DeviceMemory,
    extent: [(&'static str, usize); 2],
}

impl SplitKWorkspace {
    /// Allocates `sums` partial sums and `of_y` counters.
    pub(super) fn new(device: &CudaDevice, sums: usize, of_y: usize) -> Result<Self, NativeError> {
        let [of_parts, of_arrived] = [4 * sums, 4 * of_y];
        let parts = DeviceMemory::allocate(device.stream(), of_parts)?;
        let mut arrived = DeviceMemory::allocate(device.stream(), of_arrived)?;
        arrived.fill(0)?;
        Ok(Self { partials: parts, arrivals: arrived, extent: [("partials", of_parts), ("arrivals", of_arrived)] })
    }

    /// Outputs that the workspace adds to a kernel.
    pub(super) fn kernel_writes(&self) -> [(&'static str, usize); 2] {
        self.extent
    }

    /// Enqueues a kernel whose outputs are y and the workspace, if there is one.
    pub(super) fn enqueue<'x>(
        this: Option<&mut Self>,
        kernel: &CudaKernel,
        inputs: impl IntoIterator<Item = &'x DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        match this {
            None => kernel.enqueue_all(inputs, [y]),
            Some(Self { partials: parts, arrivals: arrived, .. }) => kernel.enqueue_all(inputs, [y, parts, arrived]),
        }
    }
}

impl PackedGemm {
    /// Compiles for a checked specification and checked sizes. A matrix-vector product has its own kernel, if that is
    /// faster.
    pub(super) fn new(
        device: &Arc<CudaDevice>,
        spec: PackedSpec,
        shape: LinearShape,
        added: bool,
    ) -> Result<Self, NativeError> {
        let matrix = GemvMatrix::Packed(spec);
        if matrix.is_faster(shape, device.compute_capability()) {
            let kernel = gemv::prepare(device, matrix, shape, added)?;
            return Ok(Self { algorithm: kernel.algorithm(), kernel, shared: None });
        }
        let tile = PackedGemmTile::new(spec, shape, device.compute_capability());
        let LinearShape { m, n, .. } = shape;
        let name = tile.name(spec);
        let blocks = check_size("the number of blocks", tile.output_tiles(shape) * tile.splits)?;
        let mut reads = vec![("x", shape.x_bytes(spec.operand_dtype()))];
        reads.extend(spec.reads(shape));
        reads.extend(spec.tensor_scale_reads());
        reads.extend(spec.has_input_scales.then_some(("the input's scales", 4 * m)));
        reads.extend(added.then(|| ("addend", shape.y_bytes(spec.kind))));
        let mut writes = vec![("y", shape.y_bytes(spec.kind))];
        let sums = blocks * tile.rows() * tile.columns;
        let shared =
            (tile.splits > 1).then(|| SplitKWorkspace::new(device, sums, tile.output_tiles(shape))).transpose()?;
        writes.extend(shared.iter().flat_map(SplitKWorkspace::kernel_writes));
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (32 * tile.warps as u32, tile.tiles as u32) };
        let extent = KernelArgs { reads, writes, sizes: (m as u64, n as u64) };
        let mut macros = tile.macros(&name, spec, shape.k);
        macros.extend(added.then(|| ADDED.into()));
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::PackedWeightGemm, &name, macros, extent, geometry)?,
            shared,
            algorithm: tile.describe(&name),
        })
    }

    /// Enqueues a launch on x and the parts of the weight.
    pub(super) fn enqueue<'x>(
        &mut self,
        inputs: impl IntoIterator<Item = &'x DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        SplitKWorkspace::enqueue(self.shared.as_mut(), &self.kernel, inputs, y)
    }
}

/// Tile configuration of the packed GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PackedGemmTile {
    /// True if tensor cores are used.
    tensor_cores: bool,
    /// Rows of x per block.
    columns: usize,
    /// Warps of a group that split k.
    warps: usize,
    /// Warp groups per block.
    tiles: usize,
    /// Fragments of 16 weight rows per warp.
    tiles_per_warp: usize,
    /// Blocks that split k.
    splits: usize,
    /// Adjacent chunks in flight per thread.
    chunks_in_flight: usize,
    /// Resident blocks per multiprocessor, which limits the registers per thread.
    blocks_per_sm: usize,
    /// Elements of x per access.
    width: usize,
    /// True if the weight rows are a multiple of the rows per block.
    full_tiles: bool,
}

impl PackedGemmTile {
    /// Two blocks per multiprocessor.
    const TARGET_BLOCKS: usize = 2 * MULTIPROCESSORS;
    /// Weight rows of an mma fragment.
    const TILE_ROWS: usize = 16;
    /// Rows of x of an mma fragment.
    const FRAGMENT_ROWS: usize = 8;
    /// Vectors per chunk: one for each of four threads.
    const VECTORS_PER_CHUNK: usize = 4;
    /// First compute capability with bf16 tensor cores.
    const TENSOR_CORES: ComputeCapability = ComputeCapability { major: 8, minor: 0 };

    fn new(spec: PackedSpec, shape: LinearShape, capability: ComputeCapability) -> Self {
        let LinearShape { m, k, .. } = shape;
        let tensor = spec.operand_dtype() != Dtype::F32 && capability >= Self::TENSOR_CORES;
        // 64 rows need 32 accumulators per thread. Without tensor cores, 8 rows need 16 accumulators, and loading a row
        // costs as much as loading a weight.
        let columns = if tensor { m.next_multiple_of(Self::FRAGMENT_ROWS).min(64) } else { m.min(Self::FRAGMENT_ROWS) };
        // Every block reads all of x, so more rows of x require more weight rows per block.
        let (warps, tiles) = match columns {
            ..=8 => (8, 1),
            9..=32 => (4, 2),
            _ => (2, 4),
        };
        let widest = vector_width(spec.operand_dtype());
        let width = if k.is_multiple_of(widest) { widest } else { 1 };
        // Without tensor cores a thread needs more registers.
        let at_once = if tensor { 2 } else { 1 };
        let tile = Self {
            tensor_cores: tensor,
            columns,
            warps,
            tiles,
            tiles_per_warp: 1,
            splits: 1,
            chunks_in_flight: 1,
            blocks_per_sm: at_once,
            width,
            full_tiles: false,
        };
        // At least two chunks per warp; otherwise the reduction costs more than the split saves.
        let chunks = k.div_ceil(Self::VECTORS_PER_CHUNK * spec.weight.values_per_vector());
        let splits = (Self::TARGET_BLOCKS / tile.output_tiles(shape)).clamp(1, (chunks / (2 * warps)).max(1));
        // Loads in flight are limited by registers and by the work per warp. Powers of two leave a remainder less
        // often.
        let words = match (tensor, columns) {
            (true, ..=8) => 20,
            (true, ..=32) => 16,
            _ => 8,
        };
        let most_in_flight = 1 << (words / spec.weight.vector_words()).clamp(1, 4).ilog2();
        let flight = chunks.div_ceil(warps * splits).min(most_in_flight);
        let tile = Self { splits, chunks_in_flight: flight, ..tile };
        let tile = tile.for_tall_weight(spec, shape).unwrap_or(tile);
        Self { full_tiles: shape.n.is_multiple_of(tile.rows()), ..tile }
    }

    /// Tile for a few rows of x and a weight with several waves of blocks: more resident blocks, or more weight rows
    /// per warp for each fragment of x.
    fn for_tall_weight(self, spec: PackedSpec, shape: LinearShape) -> Option<Self> {
        let follow = self.tensor_cores
            && self.columns == Self::FRAGMENT_ROWS
            && self.output_tiles(shape) >= 4 * Self::TARGET_BLOCKS;
        let of_chunks = spec.weight.group().is_some_and(|group| group.is_multiple_of(128));
        let chunks = shape.k.div_ceil(Self::VECTORS_PER_CHUNK * spec.weight.values_per_vector());
        match spec.weight.element.bits() {
            8 if follow => Some(Self { chunks_in_flight: 1, blocks_per_sm: 4, ..self }),
            4 if follow && of_chunks && chunks >= 8 => {
                Some(Self { warps: 4, tiles_per_warp: 2, chunks_in_flight: 2, blocks_per_sm: 4, ..self })
            }
            _ => None,
        }
    }

    /// Weight rows per block.
    fn rows(&self) -> usize {
        Self::TILE_ROWS * self.tiles_per_warp * self.tiles
    }

    /// Output tiles; each is computed by one block, or by several with split-K.
    fn output_tiles(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(self.rows()) * shape.m.div_ceil(self.columns)
    }

    /// Kernel name with the parameters of the tile, which is all that a profiler shows.
    fn name(&self, spec: PackedSpec) -> String {
        let Self { tensor_cores: tensor, columns, warps, splits, .. } = self;
        let by = if *tensor { "tensor" } else { "float" };
        format!("{}_{}_product_{by}_{columns}x{}_k{warps}x{splits}", spec.weight.name(), spec.kind, self.rows())
    }

    fn macros(&self, name: &str, spec: PackedSpec, k: usize) -> Vec<String> {
        let Self {
            tensor_cores: tensor,
            columns,
            warps,
            tiles,
            tiles_per_warp: tall,
            splits,
            chunks_in_flight: flight,
            blocks_per_sm: at_once,
            width,
            full_tiles: fits,
        } = *self;
        let mut macros = common_macros(name, spec.operand_dtype(), width);
        macros.extend(spec.macros_for_k(k));
        macros.push(format!("TENSOR_CORES={}", u8::from(tensor)));
        macros.push(format!("SCALE_PAIRS={}", u8::from(spec.supports_pair_dequantize())));
        macros.push(format!("VECTOR_WORDS={}", spec.weight.vector_words()));
        macros.push(format!("BLOCK_M={columns}"));
        macros.push(format!("WARPS_K={warps}"));
        macros.push(format!("WARPS_N={tiles}"));
        macros.push(format!("FRAGMENTS_N={tall}"));
        macros.push(format!("SPLIT_K={splits}"));
        macros.push(format!("CHUNKS_IN_FLIGHT={flight}"));
        macros.push(format!("MIN_BLOCKS={at_once}"));
        macros.push(format!("N_IS_MULTIPLE={}", u8::from(fits)));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { tensor_cores: tensor, columns, warps, splits, chunks_in_flight: flight, width, .. } = self;
        let by = if *tensor { "tensor cores" } else { "CUDA cores" };
        let (rows, accesses) = (self.rows(), 2 * flight);
        format!(
            "{name}: {by}, tile of {columns} rows of x by {rows} weight rows, split-K over {warps} warps and {splits} \
             blocks, {accesses} weight loads per thread in flight, {width} elements of x per access"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::layer_specs::tests::{formats, weight_only};
    use super::super::{
        nvrtc::tests::assert_compiles,
        packed_weight::tests::{all_specs, microscaling},
    };
    use super::*;

    const VOLTA: ComputeCapability = ComputeCapability { major: 7, minor: 0 };

    fn cuts(spec: PackedSpec) -> impl Iterator<Item = (LinearShape, PackedGemmTile)> {
        let sizes = [1, 3, 8, 9, 17, 32, 64, 65, 127, 1000];
        let shapes = sizes.into_iter().flat_map(|m| [1, 17, 129, 1000, 4096, 28672].map(|k| (m, k)));
        let shapes = shapes.flat_map(|(m, k)| [1, 127, 4096, 28672].map(|n| LinearShape { m, k, n }));
        shapes.flat_map(move |shape| {
            [ComputeCapability::HOPPER, VOLTA].map(|capability| (shape, PackedGemmTile::new(spec, shape, capability)))
        })
    }

    #[test]
    fn tiles_cover_every_shape_within_smem() {
        for spec in all_specs() {
            for (shape, tile) in cuts(spec) {
                let what = format!("{spec:?} {shape} {tile:?}");
                assert!(shape.k.is_multiple_of(tile.width), "{what}");
                // 512 threads have 128 registers each, 1024 have 64.
                assert!(tile.warps * tile.tiles * tile.blocks_per_sm * 32 <= 1024, "{what}");
                assert!(tile.tiles_per_warp == 1 || tile.tensor_cores, "{what}");
                assert!(!tile.tensor_cores || tile.columns.is_multiple_of(8), "{what}");
                // Limit of static shared memory.
                assert!(4 * tile.warps * tile.rows() * tile.columns <= 48 << 10, "{what}");
                assert!(
                    tile.splits == 1 || tile.output_tiles(shape) * tile.splits <= PackedGemmTile::TARGET_BLOCKS,
                    "{what}"
                );
            }
        }
    }

    #[test]
    fn split_k_only_for_few_weight_rows() {
        let spec = weight_only(Dtype::Bf16, formats::int8(Dtype::Bf16));
        let cut = |n, k, m| PackedGemmTile::new(spec, LinearShape { m, k, n }, ComputeCapability::HOPPER);
        assert_eq!([cut(4096, 4096, 1).splits, cut(512, 8192, 1).splits, cut(28672, 8192, 1).splits], [1, 8, 1]);
        let int4 = weight_only(Dtype::Bf16, formats::int4(128, Dtype::Bf16));
        let many = |spec, m, k, n| {
            let tile = PackedGemmTile::new(spec, LinearShape { m, k, n }, ComputeCapability::HOPPER);
            (tile.rows(), tile.warps, tile.chunks_in_flight, tile.blocks_per_sm)
        };
        assert_eq!((many(int4, 1, 8192, 28672), many(int4, 1, 4096, 4096)), ((32, 4, 2, 4), (16, 8, 4, 2)));
        assert_eq!((many(spec, 1, 8192, 28672), many(spec, 9, 8192, 28672)), ((16, 8, 1, 4), (32, 4, 4, 2)));
        // Eight chunks are two for each of four warps.
        assert_eq!((cut(64, 512, 32).splits, cut(64, 64, 1).splits), (1, 1));
        assert_eq!(cut(512, 8192, 1).name(spec), "int8_bf16_product_tensor_8x16_k8x8");
        assert_eq!((cut(64, 4096, 64).columns, cut(64, 4096, 1).columns, cut(64, 4096, 20).columns), (64, 8, 24));
    }

    #[test]
    fn tensor_cores_need_16_bit_operands() {
        let tensor = |spec| {
            PackedGemmTile::new(spec, LinearShape { m: 8, k: 64, n: 64 }, ComputeCapability::HOPPER).tensor_cores
        };
        let int8 = |kind| weight_only(kind, formats::int8(kind));
        assert!(tensor(int8(Dtype::F16)) && !tensor(int8(Dtype::F32)));
        assert!(microscaling(Dtype::F32).into_iter().all(tensor));
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_spec_and_tile() {
        // Vector and scalar accesses, one row and many, with and without split-K; every format has some of these.
        let shapes = [(1, 4096, 512), (3, 129, 17), (20, 1000, 4096), (64, 8192, 64), (2, 4096, 20000), (1, 1536, 16)];
        for (at, spec) in all_specs().into_iter().enumerate() {
            for (m, k, n) in shapes.into_iter().skip(at % 3).step_by(3) {
                let shape = LinearShape { m, k, n };
                let spec = PackedSpec { has_input_scales: at % 3 == 0, ..spec };
                let mut macros = PackedGemmTile::new(spec, shape, ComputeCapability::HOPPER).macros("product", spec, k);
                macros.extend((at % 2 == 0).then(|| ADDED.into()));
                assert_compiles(CudaSource::PackedWeightGemm, &macros);
            }
        }
    }
}
