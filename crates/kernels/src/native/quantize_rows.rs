//! Row-wise e4m3 quantization.

use super::{
    CudaDevice, CudaKernel, NativeError, ScaleSource, nvrtc::CudaSource, quantize, row_tile::RowTile,
    sizes::check_matrix,
};

/// Elements per thread: four 16-byte loads in flight; a block of 512 threads covers 16384 columns.
const ELEMENTS_PER_THREAD: usize = 32;

impl CudaKernel {
    /// Quantizes rows in bf16 to e4m3 with one f32 scale per row, bit-identical to [`crate::rowwise`].
    /// [`ScaleSource::Static`] writes a single scale. Input: x[rows, columns]; outputs: quantized values, scales.
    pub fn quantize_rows(
        device: &CudaDevice,
        scales: ScaleSource,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        check_matrix(rows, columns)?;
        let tile = RowTile::new(columns, VECTOR_WIDTH, ELEMENTS_PER_THREAD);
        let name = format!("{}_rows", scales.name());
        let (macros, args) = (macros(&name, scales, tile), quantize::args(rows, columns, scales.count(rows)));
        let kernel = Self::prepare(device, CudaSource::QuantizeRows, &name, macros, args, tile.geometry(rows))?;
        Ok(kernel.with_description(tile.describe(&name, "row read twice")))
    }
}

/// bf16 elements per 16-byte access.
const VECTOR_WIDTH: usize = 8;

fn macros(name: &str, scales: ScaleSource, tile: RowTile) -> Vec<String> {
    let first = vec![format!("KERNEL={name}"), format!("WIDTH={}", tile.width)];
    [first, tile.macros(), scales.macros()].concat()
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
