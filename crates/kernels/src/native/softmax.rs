//! Softmax of rows.

use super::{
    CudaDevice, CudaKernel, NativeError, kernel::KernelArgs, nvrtc::CudaSource, row_tile::RowTile, sizes::check_matrix,
};
use crate::Dtype;

impl CudaKernel {
    /// Softmax of each row: y = exp(x - max) / sum of exp(x - max), computed in f32. Input: x; output: y.
    pub fn softmax(device: &CudaDevice, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = RowTile::for_row(kind, columns);
        let name = format!("softmax_{kind}");
        let args = KernelArgs::for_matrix(kind, rows, columns);
        let macros = tile.kernel_macros(&name, kind);
        let kernel = Self::prepare(device, CudaSource::Softmax, &name, macros, args, tile.geometry(rows))?;
        Ok(kernel.with_description(tile.describe(&name, "row read twice")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_row_tile() {
        for kind in Dtype::ALL {
            for columns in [1, 257, 768, 4096, 32768, 70001] {
                assert_compiles(CudaSource::Softmax, &RowTile::for_row(kind, columns).kernel_macros("softmax", kind));
            }
        }
    }
}
