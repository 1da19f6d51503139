//! Column sums of an f32 matrix.

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros},
    nvrtc::CudaSource,
};
use crate::Dtype;

/// Columns per block.
const COLUMNS: usize = 32;
/// Row slices per block, so that memory is busy even with few columns.
const SLICES: usize = 32;

/// Compiles for checked sizes and sums of the given dtype, with a deterministic order of summation.
pub(super) fn kernel(device: &CudaDevice, kind: Dtype, rows: usize, columns: usize) -> Result<CudaKernel, NativeError> {
    let args = KernelArgs::new([("x", 4 * rows * columns)], [("y", kind.width() * columns)], (rows, columns));
    let geometry = LaunchGeometry::new(columns.div_ceil(COLUMNS), (COLUMNS, SLICES))?;
    let name = "column_sums";
    let kernel = CudaKernel::prepare(device, CudaSource::ColumnSums, name, macros(name, kind), args, geometry)?;
    Ok(kernel.with_description(format!("{name} of {rows} rows")))
}

fn macros(name: &str, kind: Dtype) -> Vec<String> {
    [common_macros(name, kind, 1), vec![format!("SLICES={SLICES}")]].concat()
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_dtype() {
        for kind in Dtype::ALL {
            assert_compiles(CudaSource::ColumnSums, &macros("column_sums", kind));
        }
    }
}
