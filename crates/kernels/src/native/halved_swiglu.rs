//! SwiGLU on rows whose halves are gate and value, and its gradient.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
    sizes::check_size,
};
use crate::Dtype;

/// Plan of y = silu(a) b for rows that are the concatenation of a and b, or of the gradient of such rows. Computed in
/// f32.
#[derive(Debug)]
pub struct HalvedSwigluPlan {
    kernel: CudaKernel,
    algorithm: String,
}

impl HalvedSwigluPlan {
    /// Compiles the forward pass for `rows` rows of `columns` elements, an even number.
    pub fn forward(device: &Arc<CudaDevice>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        Self::new(device, kind, (rows, columns), false)
    }

    /// Compiles the backward pass, from the rows and the gradient of the output to the gradient of the rows.
    pub fn backward(device: &Arc<CudaDevice>, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        Self::new(device, kind, (rows, columns), true)
    }

    fn new(
        device: &Arc<CudaDevice>,
        kind: Dtype,
        (rows, columns): (usize, usize),
        backward: bool,
    ) -> Result<Self, NativeError> {
        let rows = check_size("the number of rows", rows)?;
        let half = check_size("half the length of a row", columns / 2)?;
        let tile = SwigluTile::new(kind, half);
        let blocks = check_size("the number of blocks", rows.div_ceil(tile.rows) * tile.blocks_per_row)?;
        let direction = if backward { "backward" } else { "forward" };
        let name = format!("swiglu_{direction}_{kind}");
        let of_half = rows * half * kind.width();
        let (reads, writes) = match backward {
            false => (vec![("x", 2 * of_half)], vec![("y", of_half)]),
            true => (vec![("x", 2 * of_half), ("dy", of_half)], vec![("dx", 2 * of_half)]),
        };
        let extent = KernelArgs { reads, writes, sizes: (rows as u64, 2 * half as u64) };
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (tile.threads as u32, tile.rows as u32) };
        let macros = tile.macros(&name, kind, backward);
        let SwigluTile { width, threads, rows, blocks_per_row: parts } = tile;
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::Swiglu, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: {threads} threads per row, {rows} rows per block, {parts} blocks per row, {VECTORS_PER_THREAD} accesses of {width} \
                 elements of either half per thread"
            ),
        })
    }

    /// Enqueues a launch with one input (forward) or two (backward).
    pub fn enqueue(&self, inputs: &[&DeviceBuffer], y: &mut DeviceBuffer) -> Result<(), NativeError> {
        let inputs: Vec<_> = inputs.iter().map(|input| &input.memory).collect();
        self.kernel.enqueue_all(&inputs, &mut [&mut y.memory])
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

/// Vector accesses per thread and half: four 16-byte loads in flight forward, six backward.
const VECTORS_PER_THREAD: usize = 2;

/// Distribution of half a row over threads and blocks.
#[derive(Debug, Clone, Copy)]
struct SwigluTile {
    /// Elements per access.
    width: usize,
    /// Threads per row in a block.
    threads: usize,
    /// Rows per block.
    rows: usize,
    /// Blocks per row.
    blocks_per_row: usize,
}

impl SwigluTile {
    const THREADS: usize = 256;

    fn new(kind: Dtype, half: usize) -> Self {
        let widest = vector_width(kind);
        let width = if half.is_multiple_of(widest) { widest } else { 1 };
        let pieces = half / width;
        let threads = pieces.div_ceil(VECTORS_PER_THREAD).next_power_of_two().min(Self::THREADS);
        Self {
            width,
            threads,
            rows: Self::THREADS / threads,
            blocks_per_row: pieces.div_ceil(threads * VECTORS_PER_THREAD),
        }
    }

    fn macros(&self, name: &str, kind: Dtype, backward: bool) -> Vec<String> {
        let mut macros = common_macros(name, kind, self.width);
        macros.push(format!("THREADS={}", self.threads));
        macros.push(format!("ROWS={}", self.rows));
        macros.push(format!("VECTORS_PER_THREAD={VECTORS_PER_THREAD}"));
        macros.push(format!("BACKWARD={}", u8::from(backward)));
        macros
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn full_blocks_cover_every_half_row() {
        for kind in Dtype::ALL {
            for half in (1..3000).chain([4096, 14336, 28672, 70001]) {
                let tile = SwigluTile::new(kind, half);
                assert_eq!(tile.threads * tile.rows, SwigluTile::THREADS, "{half} {tile:?}");
                assert!(
                    tile.blocks_per_row * tile.threads * VECTORS_PER_THREAD * tile.width >= half,
                    "{half} {tile:?}"
                );
                assert!(
                    (tile.blocks_per_row - 1) * tile.threads * VECTORS_PER_THREAD * tile.width < half,
                    "{half} {tile:?}"
                );
            }
        }
    }

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_both_directions() {
        for kind in Dtype::ALL {
            for half in [1, 8, 1000, 4096] {
                for backward in [false, true] {
                    assert_compiles(CudaSource::Swiglu, &SwigluTile::new(kind, half).macros("swiglu", kind, backward));
                }
            }
        }
    }
}
