//! GEMM of int8 inputs with int4 weights.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, LinearShape, NativeError,
    cublaslt::{CublasLtMatmul, MatmulOperands},
    driver::DeviceMemory,
    epilogue_kernel::EpilogueKernel,
    gemm_spec::GemmSpec,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    layer_specs::DynamicSpec,
    nvrtc::CudaSource,
    packed_gemm::SplitKWorkspace,
    packed_weight::weight_parts,
    sizes::{MULTIPROCESSORS, check_size},
};
use crate::PackedTensor;

/// GEMM with epilogue: multiplies int4 weights directly for few rows, and widens them to int8 for many.
#[derive(Debug)]
pub(super) enum Int4Gemm {
    Fused(Box<FusedInt4Gemm>),
    Widened(Box<WidenedInt8Gemm>),
}

/// Single kernel with fused epilogue.
#[derive(Debug)]
pub(super) struct FusedInt4Gemm {
    kernel: CudaKernel,
    split_k: Option<SplitKWorkspace>,
    algorithm: String,
}

/// Widening kernel, cuBLASLt int8 matmul and separate epilogue.
#[derive(Debug)]
pub(super) struct WidenedInt8Gemm {
    widen: CudaKernel,
    bytes: DeviceMemory,
    product: CublasLtMatmul,
    finish: EpilogueKernel,
    algorithm: String,
}

/// Maximum rows of x for the fused kernel.
const MAX_FUSED_ROWS: usize = 64;

impl Int4Gemm {
    /// Compiles for checked sizes and their padded counterparts.
    pub(super) fn new(
        device: &Arc<CudaDevice>,
        spec: DynamicSpec,
        shape: LinearShape,
        filled: LinearShape,
    ) -> Result<Self, NativeError> {
        Ok(if shape.m <= MAX_FUSED_ROWS {
            Self::Fused(Box::new(FusedInt4Gemm::new(device, spec, shape, filled.k)?))
        } else {
            Self::Widened(Box::new(WidenedInt8Gemm::new(device, spec, shape, filled)?))
        })
    }

    /// Enqueues a launch on the quantized x and its row scales.
    pub(super) fn enqueue(
        &mut self,
        device: &CudaDevice,
        [x, row_scales]: [&DeviceMemory; 2],
        w: PackedTensor<&DeviceBuffer>,
        added: Option<&DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        let parts = weight_parts(w).chain(w.outer_scales.map(|outer| &outer.memory));
        match self {
            Self::Fused(few) => {
                let inputs = [x, row_scales].into_iter().chain(parts).chain(added);
                SplitKWorkspace::enqueue(few.split_k.as_mut(), &few.kernel, inputs, y)
            }
            Self::Widened(many) => {
                let WidenedInt8Gemm { widen, bytes, product, finish, .. } = &mut **many;
                // The last part of the weight holds its row scales.
                let parts: Vec<&DeviceMemory> = parts.collect();
                let Some((column_scales, codes)) = parts.split_last() else { return Err(NativeError::PlanMismatch) };
                widen.enqueue_all(codes.iter().copied(), [&mut *bytes])?;
                let operands =
                    MatmulOperands { x, w: bytes, y: &finish.accumulators, scales: None, addend: None, bias: None };
                product.enqueue(device, operands)?;
                finish.enqueue([row_scales, column_scales], added, y)
            }
        }
    }

    /// Kernels, their configurations, and the algorithm of cuBLASLt.
    pub(super) fn algorithm(&self) -> String {
        match self {
            Self::Fused(few) => few.algorithm.clone(),
            Self::Widened(many) => {
                let WidenedInt8Gemm { algorithm, product, finish, .. } = &**many;
                format!("{algorithm}; then {}; then {}", product.describe(), finish.algorithm)
            }
        }
    }
}

impl FusedInt4Gemm {
    fn new(
        device: &Arc<CudaDevice>,
        spec: DynamicSpec,
        shape: LinearShape,
        stride: usize,
    ) -> Result<Self, NativeError> {
        let tile = Int4GemmTile::new(shape);
        let LinearShape { m, n, .. } = shape;
        let name = tile.name(spec);
        let blocks = check_size("the number of blocks", tile.output_tiles(shape) * tile.splits)?;
        let mut reads = vec![("quantized x", m * stride), ("row scales", 4 * m)];
        reads.extend(weight_reads(spec, shape));
        reads.push(("column scales", 4 * n));
        reads.extend(spec.has_addend.then(|| ("addend", shape.y_bytes(spec.kind))));
        let mut writes = vec![("y", shape.y_bytes(spec.kind))];
        let sums = blocks * tile.rows() * tile.columns;
        let shared =
            (tile.splits > 1).then(|| SplitKWorkspace::new(device, sums, tile.output_tiles(shape))).transpose()?;
        writes.extend(shared.iter().flat_map(SplitKWorkspace::kernel_writes));
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (32 * tile.warps as u32, tile.tiles as u32) };
        let extent = KernelArgs { reads, writes, sizes: (m as u64, n as u64) };
        let macros = tile.macros(&name, spec, shape.k, stride);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::Int4Gemm, &name, macros, extent, geometry)?,
            split_k: shared,
            algorithm: tile.describe(&name),
        })
    }
}

impl WidenedInt8Gemm {
    fn new(
        device: &Arc<CudaDevice>,
        spec: DynamicSpec,
        shape: LinearShape,
        filled: LinearShape,
    ) -> Result<Self, NativeError> {
        let name = format!("widen_{}_{}", spec.format_name(), spec.kind);
        let widened_bytes = filled.n * filled.k;
        let blocks = check_size("the number of blocks", (widened_bytes / 32).div_ceil(WIDEN_THREADS))?;
        let extent = KernelArgs {
            reads: weight_reads(spec, shape),
            writes: vec![("widened weight", widened_bytes)],
            sizes: (shape.n as u64, filled.n as u64),
        };
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (WIDEN_THREADS as u32, 1) };
        let macros = widen_macros(&name, spec, shape.k, filled.k);
        Ok(Self {
            widen: CudaKernel::prepare(device, CudaSource::Int4ToInt8, &name, macros, extent, geometry)?,
            bytes: DeviceMemory::allocate(device.stream(), widened_bytes)?,
            product: CublasLtMatmul::plan(device, GemmSpec::int8(), filled)?,
            finish: EpilogueKernel::new(device, spec, shape, (filled.m, filled.n))?,
            algorithm: format!("{name}: {WIDEN_THREADS} threads per block, 32 values per thread"),
        })
    }
}

/// Parts of the weight that a kernel reads, except the row scales.
fn weight_reads(spec: DynamicSpec, LinearShape { k, n, .. }: LinearShape) -> Vec<(&'static str, usize)> {
    match spec.is_grouped() {
        true => {
            let groups = k.div_ceil(DynamicSpec::GROUP_SIZE);
            vec![
                ("quantized values", n * groups * DynamicSpec::GROUP_SIZE / 2),
                ("group scales", n * groups * spec.kind.width()),
            ]
        }
        _ => vec![("quantized values", n * k.next_multiple_of(32) / 2)],
    }
}

const WIDEN_THREADS: usize = 256;

fn weight_macros(spec: DynamicSpec, k: usize, stride: usize) -> impl Iterator<Item = String> {
    let grouped = (spec.is_grouped()).then(|| "GROUP_SCALES".to_string());
    [format!("K={k}u"), format!("STRIDE={stride}u")].into_iter().chain(grouped)
}

fn widen_macros(name: &str, spec: DynamicSpec, k: usize, stride: usize) -> Vec<String> {
    let mut macros = common_macros(name, spec.kind, 1);
    macros.extend(weight_macros(spec, k, stride));
    macros.push(format!("THREADS={WIDEN_THREADS}"));
    macros
}

/// Tile configuration of the int4 GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Int4GemmTile {
    /// Rows of x per block.
    columns: usize,
    /// Warps of a block that split k.
    warps: usize,
    /// Fragments of 16 weight rows per block.
    tiles: usize,
    /// Blocks that split k.
    splits: usize,
    /// Chunks in flight per thread.
    chunks_in_flight: usize,
}

impl Int4GemmTile {
    /// Two blocks per multiprocessor.
    const TARGET_BLOCKS: usize = 2 * MULTIPROCESSORS;
    /// Values per chunk: a vector of 32 for each of four threads.
    const CHUNK_VALUES: usize = 128;

    fn new(shape: LinearShape) -> Self {
        // More than 32 rows of x per block were slower than two passes: 16 us instead of 10 us for 64 rows.
        let columns = shape.m.next_multiple_of(8).min(32);
        // Every block reads all of x, so more rows of x require more weight rows per block.
        let (warps, tiles) = if columns == 8 { (8, 1) } else { (4, 2) };
        let tile = Self { columns, warps, tiles, splits: 1, chunks_in_flight: 1 };
        // At least two chunks per warp; otherwise the reduction costs more than the split saves.
        let chunks = shape.k.div_ceil(Self::CHUNK_VALUES);
        let splits = (Self::TARGET_BLOCKS / tile.output_tiles(shape)).clamp(1, (chunks / (2 * warps)).max(1));
        let chunks_in_flight = chunks.div_ceil(warps * splits).min(4);
        Self { splits, chunks_in_flight, ..tile }
    }

    /// Weight rows per block.
    fn rows(&self) -> usize {
        16 * self.tiles
    }

    /// Output tiles; each is computed by one block, or by several with split-K.
    fn output_tiles(&self, shape: LinearShape) -> usize {
        shape.n.div_ceil(self.rows()) * shape.m.div_ceil(self.columns)
    }

    /// Kernel name with the parameters of the tile, which is all that a profiler shows.
    fn name(&self, spec: DynamicSpec) -> String {
        let Self { columns, warps, splits, .. } = self;
        let after = spec.activation.map(|activation| format!("_{activation}")).unwrap_or_default();
        let rows = self.rows();
        format!("{}_by_int8_{}{after}_product_{columns}x{rows}_k{warps}x{splits}", spec.format_name(), spec.kind)
    }

    fn macros(&self, name: &str, spec: DynamicSpec, k: usize, stride: usize) -> Vec<String> {
        let Self { columns, warps, tiles, splits, chunks_in_flight: flight } = self;
        let mut macros = common_macros(name, spec.kind, 1);
        macros.extend(weight_macros(spec, k, stride));
        macros.extend([format!("BLOCK_M={columns}"), format!("WARPS_K={warps}"), format!("WARPS_N={tiles}")]);
        macros.extend([format!("SPLIT_K={splits}"), format!("CHUNKS_IN_FLIGHT={flight}")]);
        macros.extend(spec.activation.map(|activation| format!("ACTIVATE={activation}")));
        macros.extend(spec.has_addend.then(|| "ADDEND".into()));
        macros
    }

    fn describe(&self, name: &str) -> String {
        let Self { columns, warps, splits, chunks_in_flight: flight, .. } = self;
        format!(
            "{name}: tensor cores, tile of {columns} rows of x by {} weight rows, split-K over {warps} warps and {splits} \
             blocks, {} 16-byte loads per thread in flight",
            self.rows(),
            2 * flight
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::layer_specs::tests::dynamic_specs;
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;
    use crate::{Activation, Prologue};

    fn int4_specs() -> impl Iterator<Item = DynamicSpec> {
        dynamic_specs().filter(|spec| spec.is_int4() && !spec.is_per_tensor() && spec.prologue == Prologue::None)
    }

    #[test]
    fn tiles_cover_every_shape_within_smem() {
        for m in [1, 3, 8, 9, 17, 32, 33, 64] {
            for (k, n) in [(1, 1), (129, 127), (1000, 4096), (4096, 4096), (28672, 8192), (512, 28672)] {
                let shape = LinearShape { m, k, n };
                let tile = Int4GemmTile::new(shape);
                assert!(
                    tile.columns.is_multiple_of(8) && tile.columns >= m.min(32) && tile.chunks_in_flight > 0,
                    "{shape} {tile:?}"
                );
                assert!(4 * tile.warps * tile.rows() * tile.columns <= 48 << 10, "{shape} {tile:?}");
                assert!(
                    tile.splits == 1 || tile.output_tiles(shape) * tile.splits <= Int4GemmTile::TARGET_BLOCKS,
                    "{shape} {tile:?}"
                );
            }
        }
        assert_eq!(Int4GemmTile::new(LinearShape { m: 1, k: 4096, n: 4096 }).splits, 1);
        assert_eq!(Int4GemmTile::new(LinearShape { m: 1, k: 8192, n: 512 }).splits, 4);
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_spec_and_tile() {
        let activations = Activation::ALL.map(Some).into_iter().chain([None]).cycle();
        for (spec, activation) in int4_specs().zip(activations) {
            for (m, k, n, added) in [(1, 4096_usize, 512, true), (20, 129, 17, false), (64, 8192, 64, true)] {
                let (spec, stride) = (DynamicSpec { activation, has_addend: added, ..spec }, k.next_multiple_of(32));
                let macros = Int4GemmTile::new(LinearShape { m, k, n }).macros("product", spec, k, stride);
                assert_compiles(CudaSource::Int4Gemm, &macros);
                assert_compiles(CudaSource::Int4ToInt8, &widen_macros("widen", spec, k, stride));
            }
        }
    }
}
