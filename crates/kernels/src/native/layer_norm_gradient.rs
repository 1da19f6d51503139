//! Gradient of layer normalization.

use super::{
    CudaDevice, CudaKernel, LAYER_NORM_EPSILON, NativeError, kernel::KernelArgs, nvrtc::CudaSource, row_tile::RowTile,
    sizes::check_matrix,
};
use crate::Dtype;

impl CudaKernel {
    /// Gradient of [`CudaKernel::layer_norm`]. Inputs: x, gradient of y; output: gradient of x.
    pub fn layer_norm_gradient(
        device: &CudaDevice,
        kind: Dtype,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = RowTile::for_row_pair(kind, columns);
        let name = format!("layer_norm_gradient_{kind}");
        let bytes = rows * columns * kind.width();
        let args = KernelArgs::new([("x", bytes), ("dy", bytes)], [("dx", bytes)], (rows, columns));
        let macros = macros(&name, kind, tile);
        let kernel = Self::prepare(device, CudaSource::LayerNormGradient, &name, macros, args, tile.geometry(rows))?;
        Ok(kernel.with_description(tile.describe(&name, "rows read three times")))
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
            for columns in [1, 257, 768, 4096, 16384, 32768, 70001] {
                let macros = macros("gradient", kind, RowTile::for_row_pair(kind, columns));
                assert_compiles(CudaSource::LayerNormGradient, &macros);
            }
        }
    }
}
