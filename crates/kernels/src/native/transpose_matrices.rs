//! Batched transposition, e.g. between channels-first and channels-last images.

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    sizes::check_matrix,
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

const THREADS: usize = 256;
const TILE: usize = 32;

impl CudaKernel {
    /// Batched transposition. Input: x; output: y.
    pub fn transpose_matrices(
        device: &CudaDevice,
        kind: Dtype,
        spec: BatchedTransposeSpec,
    ) -> Result<Self, NativeError> {
        let BatchedTransposeSpec { matrices, rows, columns, input_stride: from, output_stride: to } = spec;
        check_matrix(rows, columns)?;
        assert!(columns <= from && rows <= to, "strides cover whole rows");
        let tiles = matrices.saturating_mul(to.div_ceil(TILE) * columns.div_ceil(TILE));
        let geometry = LaunchGeometry::new(tiles, (THREADS, 1))?;
        let bytes = [spec.input_len(), spec.output_len()].map(|elements| elements * kind.width());
        let args = KernelArgs::new([("x", bytes[0])], [("y", bytes[1])], (rows, columns));
        let name = format!("transpose_matrices_{kind}");
        let macros = macros(&name, kind, from, to);
        Self::prepare(device, CudaSource::TransposeMatrices, &name, macros, args, geometry)
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
