//! RMS normalization of rows.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_size,
};
use crate::Dtype;

/// Gain dtype and epsilon of an RMS normalization.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RmsNormSpec {
    /// True if the gain is f32; otherwise it has the dtype of the rows.
    pub gain_is_f32: bool,
    /// Constant added to the mean square.
    pub epsilon: f32,
}

/// Plan of y = x / sqrt(mean of squares + epsilon) * gain for each row of x, computed in f32.
#[derive(Debug)]
pub struct RmsNormPlan {
    kernel: CudaKernel,
    algorithm: String,
}

impl RmsNormPlan {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(
        device: &Arc<CudaDevice>,
        kind: Dtype,
        spec: RmsNormSpec,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        let rows = check_size("the number of rows", rows)?;
        let columns = check_size("the length of a row", columns)?;
        let tile = RowTile::for_row(kind, columns);
        let name = format!("rms_norm_{kind}");
        let geometry = LaunchGeometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(tile.rows) as u32,
            threads: (tile.threads as u32, tile.rows as u32),
        };
        let bytes = rows * columns * kind.width();
        let gain = columns * if spec.gain_is_f32 { 4 } else { kind.width() };
        let extent = KernelArgs {
            reads: vec![("x", bytes), ("gain", gain)],
            writes: vec![("y", bytes)],
            sizes: (rows as u64, columns as u64),
        };
        let macros = macros(&name, kind, spec, tile);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::RmsNorm, &name, macros, extent, geometry)?,
            algorithm: tile.describe(&name, "row read twice"),
        })
    }

    /// Enqueues a launch; the gain has one factor per column.
    pub fn enqueue(&self, x: &DeviceBuffer, gain: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&x.memory, &gain.memory], &mut [&mut y.memory])
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, spec: RmsNormSpec, tile: RowTile) -> Vec<String> {
    let mut macros = common_macros(name, kind, tile.width);
    macros.extend(tile.macros());
    macros.push(format!("WEIGHT_F32={}", u8::from(spec.gain_is_f32)));
    macros.push(format!("EPSILON={:e}f", spec.epsilon));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_tile_and_gain() {
        for kind in Dtype::ALL {
            for columns in [1, 257, 768, 4096, 32768, 70001] {
                let spec = RmsNormSpec { gain_is_f32: columns % 2 == 0, epsilon: 1e-6 };
                assert_compiles(CudaSource::RmsNorm, &macros("rms_norm", kind, spec, RowTile::for_row(kind, columns)));
            }
        }
    }
}
