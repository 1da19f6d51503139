//! Gradient of layer normalization.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, LayerNormPlan, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_size,
};
use crate::Dtype;

/// Plan of the gradient of x, from x and the gradient of the output of [`LayerNormPlan`].
#[derive(Debug)]
pub struct LayerNormGradientPlan {
    kernel: CudaKernel,
    algorithm: String,
}

impl LayerNormGradientPlan {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = check_size("the number of rows", rows)?;
        let columns = check_size("the length of a row", columns)?;
        let tile = RowTile::for_row_pair(kind, columns);
        let name = format!("layer_norm_gradient_{kind}");
        let geometry = LaunchGeometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(tile.rows) as u32,
            threads: (tile.threads as u32, tile.rows as u32),
        };
        let bytes = rows * columns * kind.width();
        let extent = KernelArgs {
            reads: vec![("x", bytes), ("dy", bytes)],
            writes: vec![("dx", bytes)],
            sizes: (rows as u64, columns as u64),
        };
        let macros = macros(&name, kind, tile);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::LayerNormGradient, &name, macros, extent, geometry)?,
            algorithm: tile.describe(&name, "rows read three times"),
        })
    }

    /// Enqueues a launch.
    pub fn enqueue(&self, x: &DeviceBuffer, dy: &DeviceBuffer, dx: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory, &dy.memory], &mut [&mut dx.memory])
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
            for columns in [1, 257, 768, 4096, 16384, 32768, 70001] {
                let macros = macros("gradient", kind, RowTile::for_row_pair(kind, columns));
                assert_compiles(CudaSource::LayerNormGradient, &macros);
            }
        }
    }
}
