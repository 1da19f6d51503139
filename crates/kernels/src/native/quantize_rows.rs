//! Row-wise e4m3 quantization.

use std::sync::Arc;

use super::{
    CudaDevice, NativeError, QuantizePlan, ScaleSource,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_size,
};

/// Elements per thread: four 16-byte loads in flight; a block of 512 threads covers 16384 columns.
const ELEMENTS_PER_THREAD: usize = 32;

impl QuantizePlan {
    /// Quantizes x[rows, columns] in bf16 to e4m3 with one f32 scale per row, bit-identical to [`crate::rowwise`].
    /// [`ScaleSource::Static`] writes a single scale.
    pub fn rows(
        device: &Arc<CudaDevice>,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        let rows = check_size("the number of rows", rows)?;
        let columns = check_size("the length of a row", columns)?;
        let tile = RowTile::new(columns, VECTOR_WIDTH, ELEMENTS_PER_THREAD);
        let name = format!("{}_rows", scales.name());
        let geometry = LaunchGeometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(tile.rows) as u32,
            threads: (tile.threads as u32, tile.rows as u32),
        };
        let scales_bytes = 4 * scales.count(rows);
        let extent = KernelArgs {
            reads: vec![("x", 2 * rows * columns)],
            writes: vec![("quantized values", rows * columns), ("scales", scales_bytes)],
            sizes: (rows as u64, columns as u64),
        };
        let macros = macros(&name, scales, tile);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::QuantizeRows, &name, macros, extent, geometry)?,
            scales_bytes,
            algorithm: tile.describe(&name, "row read twice"),
        })
    }
}

/// bf16 elements per 16-byte access.
const VECTOR_WIDTH: usize = 8;

fn macros(name: &str, scales: ScaleSource, tile: RowTile) -> Vec<String> {
    let mut macros = vec![format!("KERNEL={name}"), format!("WIDTH={}", tile.width)];
    macros.extend(tile.macros());
    macros.extend(scales.macros());
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_row_tile() {
        for scales in [ScaleSource::Amax, ScaleSource::Static] {
            for columns in [1, 31, 1000, 1025, 4096, 16384, 32768, 65536, 70001] {
                let tile = RowTile::new(columns, VECTOR_WIDTH, ELEMENTS_PER_THREAD);
                assert_compiles(CudaSource::QuantizeRows, &macros("quantize_rows", scales, tile));
            }
        }
    }
}
