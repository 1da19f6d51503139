//! RMS normalization of rows.

use super::{
    CudaDevice, CudaKernel, NativeError, kernel::KernelArgs, nvrtc::CudaSource, row_tile::RowTile, sizes::check_matrix,
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

impl CudaKernel {
    /// RMS normalization of each row: y = x / sqrt(mean of squares + epsilon) * gain, computed in f32. Inputs: x, gain
    /// of each column; output: y.
    pub fn rms_norm(
        device: &CudaDevice,
        kind: Dtype,
        spec: RmsNormSpec,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = RowTile::for_row(kind, columns);
        let name = format!("rms_norm_{kind}");
        let bytes = rows * columns * kind.width();
        let gain = columns * if spec.gain_is_f32 { 4 } else { kind.width() };
        let args = KernelArgs::new([("x", bytes), ("gain", gain)], [("y", bytes)], (rows, columns));
        let macros = macros(&name, kind, spec, tile);
        let kernel = Self::prepare(device, CudaSource::RmsNorm, &name, macros, args, tile.geometry(rows))?;
        Ok(kernel.with_description(tile.describe(&name, "row read twice")))
    }
}

fn macros(name: &str, kind: Dtype, spec: RmsNormSpec, tile: RowTile) -> Vec<String> {
    let mut macros = tile.kernel_macros(name, kind);
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
