//! Layer normalization of rows with gain and bias, optionally fused with a residual addition or GELU.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_size,
};
use crate::Dtype;

/// Fused operation before or after the normalization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AffineNormVariant {
    /// Normalization only. Inputs: x, gain, bias; output: y.
    Plain,
    /// Followed by GELU. Inputs: x, gain, bias; output: y.
    WithGelu,
    /// Preceded by a residual addition, which is normalized before rounding. Inputs: x, addend, gain, bias; outputs:
    /// sum, y.
    WithResidual,
}

impl AffineNormVariant {
    /// Kernel name.
    const fn name(self) -> &'static str {
        match self {
            Self::Plain => "layer_norm_affine",
            Self::WithGelu => "layer_norm_affine_gelu",
            Self::WithResidual => "add_layer_norm_affine",
        }
    }

    /// Function of the CUDA source that is applied last.
    const fn activation(self) -> &'static str {
        match self {
            Self::WithGelu => "gelu",
            Self::Plain | Self::WithResidual => "identity",
        }
    }
}

/// Plan of (x - mean) / sqrt(variance + epsilon) * gain + bias for each row, computed in f32.
#[derive(Debug)]
pub struct AffineLayerNormPlan {
    kernel: CudaKernel,
    algorithm: String,
}

impl AffineLayerNormPlan {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(
        device: &Arc<CudaDevice>,
        kind: Dtype,
        spec: AffineNormVariant,
        epsilon: f32,
        (rows, columns): (usize, usize),
    ) -> Result<Self, NativeError> {
        let rows = check_size("the number of rows", rows)?;
        let columns = check_size("the length of a row", columns)?;
        let tile = row_tile(kind, columns);
        let name = format!("{}_{kind}", spec.name());
        let geometry = LaunchGeometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(tile.rows) as u32,
            threads: (tile.threads as u32, tile.rows as u32),
        };
        let (whole, row) = (rows * columns * kind.width(), columns * kind.width());
        let (mut reads, mut writes) = (vec![("x", whole)], vec![("y", whole)]);
        if spec == AffineNormVariant::WithResidual {
            reads.push(("addend", whole));
            writes.insert(0, ("sum", whole));
        }
        reads.extend([("gain", row), ("bias", row)]);
        let extent = KernelArgs { reads, writes, sizes: (rows as u64, columns as u64) };
        let macros = macros(&name, kind, spec, epsilon, tile, (rows, columns));
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::AffineLayerNorm, &name, macros, extent, geometry)?,
            algorithm: tile.describe(&name, "row read three times"),
        })
    }

    /// Enqueues a launch with inputs and outputs in the order of the variant.
    pub fn enqueue(&self, inputs: &[DeviceBuffer], outputs: &mut [DeviceBuffer]) -> Result<(), NativeError> {
        let inputs: Vec<_> = inputs.iter().map(|input| &input.memory).collect();
        let mut outputs: Vec<_> = outputs.iter_mut().map(|output| &mut output.memory).collect();
        self.kernel.enqueue_all(&inputs, &mut outputs)
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Row tile with few warps per row, because every warp adds to the cost of the block-wide reductions.
fn row_tile(kind: Dtype, columns: usize) -> RowTile {
    RowTile::new(columns, vector_width(kind), 4 * vector_width(kind))
}

fn macros(
    name: &str,
    kind: Dtype,
    spec: AffineNormVariant,
    epsilon: f32,
    tile: RowTile,
    size: (usize, usize),
) -> Vec<String> {
    let mut macros = common_macros(name, kind, tile.width);
    macros.extend(tile.macros());
    macros.push(tile.full_tile_macro(size));
    macros.push(format!("EPSILON={epsilon:e}f"));
    macros.push(format!("RESIDUAL={}", u8::from(spec == AffineNormVariant::WithResidual)));
    macros.push(format!("ACTIVATE={}", spec.activation()));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_variant_and_tile() {
        for kind in Dtype::ALL {
            for spec in [AffineNormVariant::Plain, AffineNormVariant::WithGelu, AffineNormVariant::WithResidual] {
                for columns in [257, 4096, 70001] {
                    let macros = macros("affine_layer_norm", kind, spec, 1e-5, row_tile(kind, columns), (64, columns));
                    assert_compiles(CudaSource::AffineLayerNorm, &macros);
                }
            }
        }
    }
}
