//! Layer normalization of rows without gain and bias.

use super::{
    CudaDevice, CudaKernel, NativeError, kernel::KernelArgs, nvrtc::CudaSource, row_tile::RowTile, sizes::check_matrix,
};
use crate::Dtype;

/// Constant that [`CudaKernel::layer_norm`] adds to the variance.
pub const LAYER_NORM_EPSILON: f32 = 1e-5;

impl CudaKernel {
    /// Layer normalization of each row: y = (x - mean) / sqrt(variance + [`LAYER_NORM_EPSILON`]). Input: x; output: y.
    ///
    /// Statistics are computed in f32, the mean first and then the variance around it, so that a large mean costs no
    /// accuracy.
    pub fn layer_norm(device: &CudaDevice, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = RowTile::for_row(kind, columns);
        let name = format!("layer_norm_{kind}");
        let args = KernelArgs::for_matrix(kind, rows, columns);
        let macros = macros(&name, kind, tile);
        let kernel = Self::prepare(device, CudaSource::LayerNorm, &name, macros, args, tile.geometry(rows))?;
        Ok(kernel.with_description(tile.describe(&name, "row read three times")))
    }
}

fn macros(name: &str, kind: Dtype, tile: RowTile) -> Vec<String> {
    [tile.kernel_macros(name, kind), vec![format!("EPSILON={LAYER_NORM_EPSILON:e}f")]].concat()
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_row_tile() {
        for kind in Dtype::ALL {
            for columns in [1, 257, 768, 1025, 4096, 32768, 65536, 70001] {
                assert_compiles(CudaSource::LayerNorm, &macros("layer_norm", kind, RowTile::for_row(kind, columns)));
            }
        }
    }
}
