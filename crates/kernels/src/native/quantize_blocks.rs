//! e4m3 quantization with block scales in the layout of cuBLASLt.

use std::sync::Arc;

use super::{
    CudaDevice, NativeError, QuantizePlan, ScaleSource,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    sizes::check_size,
};

/// Block size along each blocked dimension.
pub(super) const BLOCK_SIZE: usize = 128;
/// Alignment of a row of scales in elements.
pub(super) const SCALE_ALIGNMENT: usize = 4;
const THREADS: usize = 256;
/// Elements per access of a thread.
const VECTOR_WIDTH: usize = 8;

/// Shape of the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlockShape {
    Row,
    /// Square blocks; the output is transposed.
    Square,
}

impl QuantizePlan {
    /// Quantizes x[rows, columns] in bf16 to e4m3 with one f32 scale per 128 elements of a row. Scales are stored
    /// transposed, as `[columns / 128, rows]` with rows padded to a multiple of 4. Scales and quotients are not
    /// rounded. Columns must be a multiple of 128.
    pub fn row_blocks(
        device: &Arc<CudaDevice>,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        Self::with_blocks(device, scales, BlockShape::Row, rows, columns)
    }

    /// Quantizes x[rows, columns] in bf16 to xᵀ[columns, rows] in e4m3 with one f32 scale per 128 x 128 block. Scales
    /// are stored as `[columns / 128, rows / 128]` with rows padded to a multiple of 4. Rows and columns must be
    /// multiples of 128.
    pub fn square_blocks(
        device: &Arc<CudaDevice>,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        Self::with_blocks(device, scales, BlockShape::Square, rows, columns)
    }

    fn with_blocks(
        device: &Arc<CudaDevice>,
        source: ScaleSource,
        blocks: BlockShape,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        check_size("the number of rows", rows)?;
        check_size("the length of a row", columns)?;
        if !columns.is_multiple_of(BLOCK_SIZE) || blocks == BlockShape::Square && !rows.is_multiple_of(BLOCK_SIZE) {
            return Err(NativeError::PartialBlocks { rows, columns, side: BLOCK_SIZE });
        }
        let (name, scales, thread_blocks) = match blocks {
            BlockShape::Row => {
                let name = format!("{}_blocks_1x128", source.name());
                let thread_blocks = (rows * columns).div_ceil(THREADS * VECTOR_WIDTH);
                (name, rows.next_multiple_of(SCALE_ALIGNMENT) * (columns / BLOCK_SIZE), thread_blocks)
            }
            BlockShape::Square => {
                let (down, across) = (rows / BLOCK_SIZE, columns / BLOCK_SIZE);
                (
                    format!("{}_blocks_128x128", source.name()),
                    down.next_multiple_of(SCALE_ALIGNMENT) * across,
                    down * across,
                )
            }
        };
        let extent = KernelArgs {
            reads: vec![("x", 2 * rows * columns)],
            writes: vec![("quantized values", rows * columns), ("scales", 4 * scales)],
            sizes: (rows as u64, columns as u64),
        };
        let blocks_of_threads = check_size("the number of blocks", thread_blocks)? as u32;
        let geometry = LaunchGeometry { blocks: blocks_of_threads, threads: (THREADS as u32, 1) };
        let macros = macros(&name, source, blocks);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::QuantizeBlocks, &name, macros, extent, geometry)?,
            scales_bytes: 4 * scales,
            algorithm: format!("{name}: {blocks_of_threads} blocks of {THREADS} threads"),
        })
    }
}

fn macros(name: &str, scales: ScaleSource, blocks: BlockShape) -> Vec<String> {
    let squares = u32::from(blocks == BlockShape::Square);
    let mut macros = vec![format!("KERNEL={name}"), format!("THREADS={THREADS}"), format!("SQUARE_BLOCKS={squares}")];
    macros.extend(scales.macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_both_block_shapes() {
        for scales in [ScaleSource::Amax, ScaleSource::Static] {
            for blocks in [BlockShape::Row, BlockShape::Square] {
                assert_compiles(CudaSource::QuantizeBlocks, &macros("quantize_blocks", scales, blocks));
            }
        }
    }
}
