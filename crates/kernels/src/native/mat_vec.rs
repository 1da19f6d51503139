//! Matrix-vector multiplication.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_size,
};
use crate::Dtype;

/// Plan of y = a x for a row-major matrix a[rows, columns], accumulated in f32 and rounded to the dtype.
#[derive(Debug)]
pub struct MatVecPlan {
    kernel: CudaKernel,
    algorithm: String,
}

impl MatVecPlan {
    /// Compiles for `rows` rows of `columns` elements.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        let rows = check_size("the number of rows", rows)?;
        let columns = check_size("the length of a row", columns)?;
        let tile = row_tile(kind, columns);
        let name = format!("gemv_{kind}");
        let geometry = LaunchGeometry {
            // At most `rows`, which was checked.
            blocks: rows.div_ceil(tile.rows) as u32,
            threads: (tile.threads as u32, tile.rows as u32),
        };
        let extent = KernelArgs {
            reads: vec![("a", rows * columns * kind.width()), ("x", columns * kind.width())],
            writes: vec![("y", rows * kind.width())],
            sizes: (rows as u64, columns as u64),
        };
        let macros = macros(&name, kind, columns, tile);
        let RowTile { width, threads, rows, .. } = tile;
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::Gemv, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: {threads} threads per row, {rows} rows per block, {} accesses of {width} elements per thread in \
                 flight",
                loads_in_flight(columns, tile)
            ),
        })
    }

    /// Enqueues a launch.
    pub fn enqueue(&self, a: &DeviceBuffer, x: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue_all([&a.memory, &x.memory], [&mut y.memory])
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Elements per thread: four 16-byte accesses of bf16 or f16.
const ELEMENTS_PER_THREAD: usize = 32;
const MAX_LOADS_IN_FLIGHT: usize = 4;

fn row_tile(kind: Dtype, columns: usize) -> RowTile {
    RowTile::new(columns, vector_width(kind), ELEMENTS_PER_THREAD)
}

fn loads_in_flight(columns: usize, tile: RowTile) -> usize {
    (columns / tile.width).div_ceil(tile.threads).min(MAX_LOADS_IN_FLIGHT)
}

fn macros(name: &str, kind: Dtype, columns: usize, tile: RowTile) -> Vec<String> {
    let mut macros = common_macros(name, kind, tile.width);
    macros.push(format!("THREADS={}", tile.threads));
    macros.push(format!("ROWS={}", tile.rows));
    macros.push(format!("VECTORS_PER_THREAD={}", loads_in_flight(columns, tile)));
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
                assert_compiles(CudaSource::Gemv, &macros("gemv", kind, columns, row_tile(kind, columns)));
            }
        }
    }
}
