//! Batched transposition, e.g. between channels-first and channels-last images.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    sizes::check_size,
};
use crate::Dtype;

/// Sizes and row strides of a batch of matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchedTransposeSpec {
    /// Number of matrices.
    pub matrices: usize,
    /// Rows per matrix.
    pub rows: usize,
    /// Columns per matrix.
    pub columns: usize,
    /// Row stride of the input in elements; at least `columns`.
    pub input_stride: usize,
    /// Row stride of the output in elements; at least `rows`. The padding is set to zero.
    pub output_stride: usize,
}

impl BatchedTransposeSpec {
    /// Elements of the input.
    pub fn input_len(&self) -> usize {
        self.matrices * self.rows * self.input_stride
    }

    /// Elements of the output.
    pub fn output_len(&self) -> usize {
        self.matrices * self.columns * self.output_stride
    }
}

/// Plan of a batched transposition.
#[derive(Debug)]
pub struct TransposeMatricesPlan {
    kernel: CudaKernel,
}

const THREADS: usize = 256;
const TILE: usize = 32;

impl TransposeMatricesPlan {
    /// Compiles for one specification.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, spec: BatchedTransposeSpec) -> Result<Self, NativeError> {
        let BatchedTransposeSpec { matrices, rows, columns, input_stride: from, output_stride: to } = spec;
        check_size("the number of rows", rows)?;
        check_size("the length of a row", columns)?;
        assert!(columns <= from && rows <= to, "strides cover whole rows");
        let tiles = matrices.saturating_mul(to.div_ceil(TILE) * columns.div_ceil(TILE));
        let blocks = check_size("the number of blocks", tiles)?;
        let extent = KernelArgs {
            reads: vec![("x", spec.input_len() * kind.width())],
            writes: vec![("y", spec.output_len() * kind.width())],
            sizes: (rows as u64, columns as u64),
        };
        let name = format!("transpose_matrices_{kind}");
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, kind, from, to);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::TransposeMatrices, &name, macros, extent, geometry)?,
        })
    }

    /// Enqueues a launch.
    pub fn enqueue(&self, x: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue(&x.memory, &mut y.memory)
    }
}

fn macros(name: &str, kind: Dtype, from: usize, to: usize) -> Vec<String> {
    let mut macros = common_macros(name, kind, 1);
    macros.extend([format!("THREADS={THREADS}"), format!("X_STRIDE={from}"), format!("Y_STRIDE={to}")]);
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
            assert_compiles(CudaSource::TransposeMatrices, &macros("transpose_matrices", kind, 100, 64));
        }
    }
}
