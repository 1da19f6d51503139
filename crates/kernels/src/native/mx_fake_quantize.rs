//! OCP microscaling (MX) fake quantization of bf16, for GPUs without MX tensor-core instructions.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError, ScaleSource,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    sizes::check_size,
};
use crate::Dtype;

/// Elements that share a scale.
const BLOCK_SIZE: usize = 32;
const THREADS: usize = 256;

/// Plan that quantizes bf16 to e4m3 with one power-of-two scale per 32 elements, rounded up, or with
/// [`ScaleSource::Static`], and dequantizes again.
#[derive(Debug)]
pub struct MxFakeQuantizePlan {
    kernel: CudaKernel,
    algorithm: String,
}

/// Axis along which the elements of a block are contiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MxBlockAxis {
    /// Blocks within a row.
    Rows,
    /// Blocks within a column.
    Columns,
}

impl MxFakeQuantizePlan {
    /// Compiles for x[rows, columns] in bf16. The blocked dimension must be a multiple of 32.
    pub fn new(
        device: &Arc<CudaDevice>,
        scales: ScaleSource,
        blocks: MxBlockAxis,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        check_size("the number of rows", rows)?;
        check_size("the length of a row", columns)?;
        let (down, along, name) = match blocks {
            MxBlockAxis::Rows => (false, columns, format!("{}_mx_rows", scales.name())),
            MxBlockAxis::Columns => (true, rows, format!("{}_mx_columns", scales.name())),
        };
        if !along.is_multiple_of(BLOCK_SIZE) {
            return Err(NativeError::PartialBlocks { rows, columns, side: BLOCK_SIZE });
        }
        let width = vector_width(down, columns);
        let of_a_thread = if down { BLOCK_SIZE * width } else { width };
        let count = check_size("the number of blocks", (rows * columns / of_a_thread).div_ceil(THREADS))?;
        let geometry = LaunchGeometry { blocks: count as u32, threads: (THREADS as u32, 1) };
        let (macros, extent) = (macros(&name, scales, down, width), KernelArgs::for_matrix(Dtype::Bf16, rows, columns));
        let kernel = CudaKernel::prepare(device, CudaSource::MxFakeQuantize, &name, macros, extent, geometry)?;
        Ok(Self { kernel, algorithm: format!("{name}: {count} blocks of {THREADS} threads") })
    }

    /// Bytes of the input, and of the output.
    pub fn bytes(&self) -> usize {
        self.kernel.first_input_bytes()
    }

    /// Enqueues a launch.
    pub fn enqueue(&self, x: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue(&x.memory, &mut y.memory)
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
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
