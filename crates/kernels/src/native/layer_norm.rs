//! Layer normalization of rows without gain and bias.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_size,
};
use crate::Dtype;

/// Plan of y = (x - mean) / sqrt(variance + 1e-5) for each row of x.
///
/// Statistics are computed in f32, the mean first and then the variance around it, so that a large mean costs no
/// accuracy.
#[derive(Debug)]
pub struct LayerNormPlan {
    kernel: CudaKernel,
    algorithm: String,
}

impl LayerNormPlan {
    /// Constant added to the variance.
    pub const EPSILON: f32 = 1e-5;

    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = check_size("the number of rows", rows)?;
        let columns = check_size("the length of a row", columns)?;
        let tile = RowTile::for_row(kind, columns);
        let name = format!("layer_norm_{kind}");
        let geometry = LaunchGeometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(tile.rows) as u32,
            threads: (tile.threads as u32, tile.rows as u32),
        };
        Ok(Self {
            kernel: CudaKernel::prepare(
                device,
                CudaSource::LayerNorm,
                &name,
                macros(&name, kind, tile),
                KernelArgs::for_matrix(kind, rows, columns),
                geometry,
            )?,
            algorithm: tile.describe(&name, "row read three times"),
        })
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

fn macros(name: &str, kind: Dtype, tile: RowTile) -> Vec<String> {
    let mut macros = common_macros(name, kind, tile.width);
    macros.extend(tile.macros());
    macros.push(format!("EPSILON={:e}f", LayerNormPlan::EPSILON));
    macros
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
