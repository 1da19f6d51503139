//! Softmax of rows.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_size,
};
use crate::Dtype;

/// Plan of y = exp(x - max) / sum of exp(x - max) for each row of x, computed in f32.
#[derive(Debug)]
pub struct SoftmaxPlan {
    kernel: CudaKernel,
    algorithm: String,
}

impl SoftmaxPlan {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = check_size("the number of rows", rows)?;
        let columns = check_size("the length of a row", columns)?;
        let tile = RowTile::for_row(kind, columns);
        let name = format!("softmax_{kind}");
        let geometry = LaunchGeometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(tile.rows) as u32,
            threads: (tile.threads as u32, tile.rows as u32),
        };
        let extent = KernelArgs::for_matrix(kind, rows, columns);
        let macros = macros(&name, kind, tile);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::Softmax, &name, macros, extent, geometry)?,
            algorithm: tile.describe(&name, "row read twice"),
        })
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
            for columns in [1, 257, 768, 4096, 32768, 70001] {
                assert_compiles(CudaSource::Softmax, &macros("softmax", kind, RowTile::for_row(kind, columns)));
            }
        }
    }
}
