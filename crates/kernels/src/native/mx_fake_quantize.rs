//! OCP microscaling (MX) fake quantization of bf16, for GPUs without MX tensor-core instructions.

use super::{
    CudaDevice, CudaKernel, NativeError, ScaleSource,
    kernel::{KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    sizes::check_matrix,
};
use crate::Dtype;

/// Elements that share a scale.
const BLOCK_SIZE: usize = 32;
const THREADS: usize = 256;

/// Axis along which the elements of a block are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MxBlockAxis {
    /// Blocks within a row.
    Rows,
    /// Blocks within a column.
    Columns,
}

impl CudaKernel {
    /// Quantizes bf16 to e4m3 with one power-of-two scale per 32 elements, rounded up, or with [`ScaleSource::Static`],
    /// and dequantizes again. Input: x[rows, columns], whose blocked dimension must be a multiple of 32; output: y.
    pub fn mx_fake_quantize(
        device: &CudaDevice,
        scales: ScaleSource,
        blocks: MxBlockAxis,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let (down, along, name) = match blocks {
            MxBlockAxis::Rows => (false, columns, format!("{}_mx_rows", scales.name())),
            MxBlockAxis::Columns => (true, rows, format!("{}_mx_columns", scales.name())),
        };
        if !along.is_multiple_of(BLOCK_SIZE) {
            return Err(NativeError::PartialBlocks { rows, columns, side: BLOCK_SIZE });
        }
        let width = vector_width(down, columns);
        let of_a_thread = if down { BLOCK_SIZE * width } else { width };
        let blocks = (rows * columns / of_a_thread).div_ceil(THREADS);
        let geometry = LaunchGeometry::new(blocks, (THREADS, 1))?;
        let (macros, args) = (macros(&name, scales, down, width), KernelArgs::for_matrix(Dtype::Bf16, rows, columns));
        let kernel = Self::prepare(device, CudaSource::MxFakeQuantize, &name, macros, args, geometry)?;
        Ok(kernel.with_description(format!("{name}: {blocks} blocks of {THREADS} threads")))
    }
}

/// Elements per access of a thread.
fn vector_width(down: bool, columns: usize) -> usize {
    match down {
        false => 8,
        true if columns.is_multiple_of(2) => 2,
        true => 1,
    }
}

fn macros(name: &str, scales: ScaleSource, down: bool, width: usize) -> Vec<String> {
    let mut macros = vec![format!("KERNEL={name}"), format!("THREADS={THREADS}")];
    macros.extend([format!("COLUMN_BLOCKS={}", u32::from(down)), format!("WIDTH={width}")]);
    macros.extend(scales.macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_both_axes() {
        for scales in [ScaleSource::Amax, ScaleSource::Static] {
            for (down, width) in [(false, 8), (true, 2), (true, 1)] {
                assert_compiles(CudaSource::MxFakeQuantize, &macros("micro_numbers", scales, down, width));
            }
        }
    }
}
