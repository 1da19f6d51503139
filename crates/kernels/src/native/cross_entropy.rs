//! Mean cross-entropy of rows of logits.

use super::{
    CudaDevice, CudaKernel, NativeError,
    grid_reduction::{block_count, occupancy_macro, resident_warps},
    kernel::{KernelArgs, common_macros, vector_width},
    nvrtc::CudaSource,
    row_tile::RowTile,
    sizes::check_size,
};
use crate::Dtype;

impl CudaKernel {
    /// Mean over rows of ln(sum of exp(x)) - `x[target]`, computed in f32 in one pass over the logits. Inputs: logits,
    /// i32 class indices; output: a single f32.
    pub fn cross_entropy(device: &CudaDevice, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        check_size("the number of rows", rows)?;
        check_size("the number of classes", columns)?;
        let tile = row_tile(kind, rows, columns);
        let blocks = block_count(rows.div_ceil(tile.rows), tile.threads * tile.rows, RESIDENT_THREADS);
        let name = format!("cross_entropy_{kind}");
        let reads = [("x", rows * columns * kind.width()), ("targets", 4 * rows)];
        let args = KernelArgs::new(reads, [("y", 4)], (rows, columns));
        let (macros, geometry) = (macros(&name, kind, columns, tile), tile.geometry_of_blocks(blocks));
        let kernel = Self::prepare(device, CudaSource::CrossEntropy, &name, macros, args, geometry)?;
        let RowTile { width, threads, rows, .. } = tile;
        let description = format!(
            "{name}: {blocks} blocks of {threads} threads per row for {rows} rows, {} accesses of {width} logits per \
             thread in flight, row read once, reduction in the last block",
            loads_in_flight(columns, tile)
        );
        Ok(kernel.with_grid_reduction(blocks)?.with_description(description))
    }
}

/// Resident threads per multiprocessor with up to 64 registers each.
const RESIDENT_THREADS: usize = 1024;

/// Maximum vector loads in flight; the registers hold these and the vectors being processed.
const MAX_LOADS_IN_FLIGHT: usize = 4;

/// Row tile: one warp per row if there are many rows, which avoids barriers; several warps per row if there are few.
fn row_tile(kind: Dtype, rows: usize, columns: usize) -> RowTile {
    let warps = resident_warps(RESIDENT_THREADS).div_ceil(rows);
    let for_each_thread = columns.div_ceil(32 * warps).max(MAX_LOADS_IN_FLIGHT * vector_width(kind));
    RowTile::new(columns, vector_width(kind), for_each_thread)
}

fn loads_in_flight(columns: usize, tile: RowTile) -> usize {
    (columns / tile.width).div_ceil(tile.threads).min(MAX_LOADS_IN_FLIGHT)
}

fn macros(name: &str, kind: Dtype, columns: usize, tile: RowTile) -> Vec<String> {
    let mut macros = common_macros(name, kind, tile.width);
    macros.push(format!("THREADS={}", tile.threads));
    macros.push(format!("ROWS={}", tile.rows));
    macros.push(occupancy_macro(tile.threads * tile.rows, RESIDENT_THREADS));
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
            for columns in [2, 257, 768, 4096, 32768, 70001] {
                let tile = row_tile(kind, 2 * columns, columns);
                assert_compiles(CudaSource::CrossEntropy, &macros("cross_entropy", kind, columns, tile));
            }
        }
    }

    #[test]
    fn few_rows_get_more_warps_each() {
        let threads = |rows, columns| row_tile(Dtype::Bf16, rows, columns).threads;
        assert_eq!(
            [threads(16384, 4096), threads(2048, 4096), threads(1, 4096), threads(1, 70000)],
            [32, 96, 128, 1024]
        );
    }
}
