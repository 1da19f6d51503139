//! e4m3 quantization with block scales in the layout of cuBLASLt.

use super::{
    CudaDevice, CudaKernel, NativeError, ScaleSource, kernel::LaunchGeometry, nvrtc::CudaSource, quantize,
    sizes::check_matrix,
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

impl CudaKernel {
    /// Quantizes bf16 to e4m3 with one f32 scale per 128 elements of a row. Input: x[rows, columns], whose columns must
    /// be a multiple of 128; outputs: quantized values, scales. Scales are stored transposed, as
    /// `[columns / 128, rows]` with rows padded to a multiple of 4. Scales and quotients are not rounded.
    pub fn quantize_row_blocks(
        device: &CudaDevice,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        quantize_blocks(device, scales, BlockShape::Row, rows, columns)
    }

    /// Quantizes bf16 to e4m3 with one f32 scale per 128 x 128 block, and transposes. Input: x[rows, columns], whose
    /// rows and columns must be multiples of 128; outputs: quantized xᵀ[columns, rows], scales. Scales are stored as
    /// `[columns / 128, rows / 128]` with rows padded to a multiple of 4.
    pub fn quantize_square_blocks(
        device: &CudaDevice,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        quantize_blocks(device, scales, BlockShape::Square, rows, columns)
    }
}

fn quantize_blocks(
    device: &CudaDevice,
    source: ScaleSource,
    shape: BlockShape,
    rows: usize,
    columns: usize,
) -> Result<CudaKernel, NativeError> {
    check_matrix(rows, columns)?;
    if !columns.is_multiple_of(BLOCK_SIZE) || shape == BlockShape::Square && !rows.is_multiple_of(BLOCK_SIZE) {
        return Err(NativeError::PartialBlocks { rows, columns, side: BLOCK_SIZE });
    }
    let across = columns / BLOCK_SIZE;
    let (suffix, lines, blocks) = match shape {
        BlockShape::Row => ("1x128", rows, (rows * columns).div_ceil(THREADS * VECTOR_WIDTH)),
        BlockShape::Square => ("128x128", rows / BLOCK_SIZE, rows / BLOCK_SIZE * across),
    };
    let name = format!("{}_blocks_{suffix}", source.name());
    let args = quantize::args(rows, columns, lines.next_multiple_of(SCALE_ALIGNMENT) * across);
    let geometry = LaunchGeometry::new(blocks, (THREADS, 1))?;
    let macros = macros(&name, source, shape);
    let kernel = CudaKernel::prepare(device, CudaSource::QuantizeBlocks, &name, macros, args, geometry)?;
    Ok(kernel.with_description(format!("{name}: {blocks} blocks of {THREADS} threads")))
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
