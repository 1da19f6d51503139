//! Layer normalization of rows with gain and bias, optionally fused with a residual addition or GELU.

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, vector_width},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_matrix,
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

impl CudaKernel {
    /// Layer normalization (x - mean) / sqrt(variance + epsilon) * gain + bias of each row, computed in f32. Inputs and
    /// outputs as in the variant.
    pub fn layer_norm_affine(
        device: &CudaDevice,
        kind: Dtype,
        spec: AffineNormVariant,
        epsilon: f32,
        (rows, columns): (usize, usize),
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = row_tile(kind, columns);
        let name = format!("{}_{kind}", spec.name());
        let (whole, row) = (rows * columns * kind.width(), columns * kind.width());
        let (mut reads, mut writes) = (vec![("x", whole)], vec![("y", whole)]);
        if spec == AffineNormVariant::WithResidual {
            reads.push(("addend", whole));
            writes.insert(0, ("sum", whole));
        }
        reads.extend([("gain", row), ("bias", row)]);
        let args = KernelArgs::new(reads, writes, (rows, columns));
        let macros = macros(&name, kind, spec, epsilon, tile, (rows, columns));
        let kernel = Self::prepare(device, CudaSource::AffineLayerNorm, &name, macros, args, tile.geometry(rows))?;
        Ok(kernel.with_description(tile.describe(&name, "row read three times")))
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
    let mut macros = tile.kernel_macros(name, kind);
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
