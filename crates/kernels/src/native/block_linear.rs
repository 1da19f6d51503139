//! Linear layers with block-sparse weights.

use std::sync::Arc;

use super::{
    ComputeCapability, CudaDevice, LinearShape, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    sizes::{check_shape, check_size},
};
use crate::Dtype;

/// Block-sparse weight w[n, k] of square blocks with equally many nonzero blocks per block row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BlockLinearSpec {
    /// Dtype of x, w and y.
    pub(super) kind: Dtype,
    /// Block size; n and k are multiples of it.
    pub(super) side: usize,
    /// Nonzero blocks per block row.
    pub(super) blocks_per_row: usize,
    /// True if a matrix of the shape of y is added.
    pub(super) has_addend: bool,
}

/// Plan of y[m, n] = x[m, k] · w[n, k]ᵀ + addend[m, n] for a block-sparse weight, with f32 accumulators. Zero blocks
/// are neither read nor multiplied. Tensor cores are used for 16-bit dtypes if the block size is a multiple of 16.
#[derive(Debug)]
pub(super) struct BlockLinearPlan {
    kernel: CudaKernel,
    algorithm: String,
}

impl BlockLinearPlan {
    /// Selects the tile and compiles.
    pub(super) fn new(
        device: &Arc<CudaDevice>,
        spec: BlockLinearSpec,
        shape: LinearShape,
    ) -> Result<Self, NativeError> {
        let shape = check_shape(shape)?;
        let (LinearShape { m, k, n }, BlockLinearSpec { kind, side, blocks_per_row: kept, has_addend: added }) =
            (shape, spec);
        if side == 0 || !n.is_multiple_of(side) || !k.is_multiple_of(side) {
            return Err(NativeError::WeightBlockSize { side, k, n });
        }
        let limit = k / side;
        if !(1..=limit).contains(&kept) {
            return Err(NativeError::InvalidSize {
                what: "the number of nonzero blocks per block row",
                limit,
                value: kept,
            });
        }
        let tile = BlockSparseTile::new(spec, shape, device.compute_capability());
        let name = tile.name(spec);
        let mut reads = vec![("x", shape.x_bytes(kind)), ("nonzero blocks", n * kept * side * kind.width())];
        reads.push(("column indices", 4 * n / side * kept));
        reads.extend(added.then(|| ("addend", shape.y_bytes(kind))));
        let extent = KernelArgs { reads, writes: vec![("y", shape.y_bytes(kind))], sizes: (m as u64, n as u64) };
        let blocks = check_size("the number of blocks", tile.blocks(spec, shape))?;
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (tile.threads() as u32, 1) };
        let macros = tile.macros(&name, spec, k);
        let kernel = CudaKernel::prepare(device, tile.source(), &name, macros, extent, geometry)?;
        let kernel = match tile {
            BlockSparseTile::TensorCores { .. } => kernel.with_dynamic_smem(tile.shared_bytes())?,
            BlockSparseTile::CudaCores => kernel,
        };
        Ok(Self { kernel, algorithm: tile.describe(&name, spec, limit) })
    }

    /// Enqueues a launch. A weight has rows without the zero blocks, and the u32 block-column index of each nonzero block,
    /// ascending within a block row. `added` is required if and only if the specification has an addend.
    pub(super) fn enqueue(
        &self,
        x: &DeviceMemory,
        [values, column_indices]: [&DeviceMemory; 2],
        added: Option<&DeviceMemory>,
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        self.kernel.enqueue_all([x, values, column_indices].into_iter().chain(added), [y])
    }

    /// Kernel name and tile configuration.
    pub(super) fn algorithm(&self) -> String {
        self.algorithm.clone()
    }
}

/// Tile configuration of the block-sparse GEMM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockSparseTile {
    /// Tensor cores.
    TensorCores {
        /// Rows of x per block.
        rows: usize,
        /// Columns of y per block.
        columns: usize,
        /// Tile size along k of one pipeline stage.
        tile_k: usize,
        /// Warps along the columns.
        warps_n: usize,
        /// Pipeline stages.
        stages: usize,
    },
    /// CUDA cores.
    CudaCores,
}

/// Rows and columns of y per block on CUDA cores.
const FLOAT_TILE: usize = 64;

impl BlockSparseTile {
    fn new(spec: BlockLinearSpec, shape: LinearShape, capability: ComputeCapability) -> Self {
        let BlockLinearSpec { kind, side, .. } = spec;
        if kind == Dtype::F32 || !side.is_multiple_of(16) || capability < ComputeCapability::AMPERE {
            return Self::CudaCores;
        }
        let step = [64, 32, 16].into_iter().find(|step| side.is_multiple_of(*step)).unwrap_or(16);
        let (rows, across, stages) = match shape.m {
            ..=16 if step == 16 => (32, 2, 6),
            ..=16 => (16, 4, 6),
            17..=64 => (64, 1, 4),
            _ => (128, 1, 3),
        };
        Self::TensorCores { rows, columns: step, tile_k: step, warps_n: across, stages }
    }

    fn source(self) -> CudaSource {
        match self {
            Self::TensorCores { .. } => CudaSource::BlockSparseGemm,
            Self::CudaCores => CudaSource::BlockSparseGemmSimt,
        }
    }

    fn threads(self) -> usize {
        match self {
            Self::TensorCores { .. } => 128,
            Self::CudaCores => 256,
        }
    }

    fn blocks(self, spec: BlockLinearSpec, LinearShape { m, n, .. }: LinearShape) -> usize {
        match self {
            Self::TensorCores { rows, columns, .. } => m.div_ceil(rows) * (n / columns),
            Self::CudaCores => m.div_ceil(FLOAT_TILE) * (n / spec.side) * spec.side.div_ceil(FLOAT_TILE),
        }
    }

    fn shared_bytes(self) -> usize {
        match self {
            Self::TensorCores { rows, columns, tile_k: step, stages, .. } => stages * (rows + columns) * step * 2,
            Self::CudaCores => 0,
        }
    }

    /// Kernel name with the parameters of the tile, which is all that a profiler shows.
    fn name(self, BlockLinearSpec { kind, side, blocks_per_row: kept, .. }: BlockLinearSpec) -> String {
        match self {
            Self::TensorCores { rows, columns, .. } => {
                format!("blocks_{side}_{kind}_product_{kept}_kept_{rows}x{columns}")
            }
            Self::CudaCores => format!("blocks_{side}_{kind}_product_{kept}_kept_float"),
        }
    }

    fn macros(self, name: &str, spec: BlockLinearSpec, k: usize) -> Vec<String> {
        let BlockLinearSpec { kind, side, blocks_per_row: kept, has_addend: added } = spec;
        let mut macros = common_macros(name, kind, 1);
        macros.extend([format!("K={k}ull"), format!("BLOCK_SIZE={side}u"), format!("BLOCKS_PER_ROW={kept}u")]);
        if let Self::TensorCores { rows, columns, tile_k: step, warps_n: across, stages } = self {
            macros.extend([format!("TILE_M={rows}"), format!("TILE_N={columns}"), format!("TILE_K={step}")]);
            macros.extend([format!("WARPS_N={across}"), format!("STAGES={stages}")]);
        }
        macros.extend(added.then(|| "ADDEND".into()));
        macros
    }

    fn describe(
        self,
        name: &str,
        BlockLinearSpec { side, blocks_per_row: kept, .. }: BlockLinearSpec,
        of: usize,
    ) -> String {
        let what = format!("{name}: {kept} of {of} nonzero blocks of size {side} per block row");
        match self {
            Self::TensorCores { rows, columns, tile_k: step, stages, .. } => format!(
                "{what}, tensor cores, tile of {rows} rows of x by {columns} weight rows, {stages} stages of k={step}"
            ),
            Self::CudaCores => format!("{what}, CUDA cores, tile {FLOAT_TILE}x{FLOAT_TILE}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile_for_every_block_size_and_tile() {
        for kind in Dtype::ALL {
            for side in [1, 16, 20, 32, 48, 64, 128] {
                for (at, m) in [1, 17, 65].into_iter().enumerate() {
                    let spec = BlockLinearSpec { kind, side, blocks_per_row: 3, has_addend: at % 2 == 0 };
                    let shape = LinearShape { m, k: 8 * side, n: 4 * side };
                    let tile = BlockSparseTile::new(spec, shape, ComputeCapability::HOPPER);
                    assert!(tile.shared_bytes() <= 100 << 10, "{tile:?}");
                    assert_eq!(tile == BlockSparseTile::CudaCores, kind == Dtype::F32 || side % 16 != 0, "{spec:?}");
                    assert_compiles(tile.source(), &tile.macros("product", spec, 8 * side));
                }
            }
        }
    }
}
