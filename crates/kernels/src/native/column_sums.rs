//! Column sums of an f32 matrix.

use std::sync::Arc;

use super::{
    CudaDevice, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
};
use crate::Dtype;

/// Column-sum kernel with a deterministic order of summation.
#[derive(Debug)]
pub(super) struct ColumnSumKernel {
    kernel: CudaKernel,
}

/// Columns per block.
const COLUMNS: usize = 32;
/// Row slices per block, so that memory is busy even with few columns.
const SLICES: usize = 32;

impl ColumnSumKernel {
    /// Compiles for checked sizes and sums of the given dtype.
    pub(super) fn new(device: &Arc<CudaDevice>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let extent = KernelArgs {
            reads: vec![("x", 4 * rows * columns)],
            writes: vec![("y", kind.width() * columns)],
            sizes: (rows as u64, columns as u64),
        };
        let blocks = columns.div_ceil(COLUMNS) as u32;
        let geometry = LaunchGeometry { blocks, threads: (COLUMNS as u32, SLICES as u32) };
        let name = "column_sums";
        let kernel = CudaKernel::prepare(device, CudaSource::ColumnSums, name, macros(name, kind), extent, geometry)?;
        Ok(Self { kernel })
    }

    /// Enqueues a launch.
    pub(super) fn enqueue(&self, x: &DeviceMemory, y: &mut DeviceMemory) -> Result<(), NativeError> {
        self.kernel.enqueue(x, y)
    }
}

fn macros(name: &str, kind: Dtype) -> Vec<String> {
    let mut macros = common_macros(name, kind, 1);
    macros.push(format!("SLICES={SLICES}"));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_dtype() {
        for kind in Dtype::ALL {
            assert_compiles(CudaSource::ColumnSums, &macros("column_sums", kind));
        }
    }
}
