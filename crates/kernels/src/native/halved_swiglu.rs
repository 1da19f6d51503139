//! SwiGLU on rows whose halves are gate and value, and its gradient.

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
    sizes::check_size,
};
use crate::Dtype;

impl CudaKernel {
    /// SwiGLU y = silu(a) b for `rows` rows of `columns` elements, an even number, that are the concatenation of a and
    /// b. Computed in f32. Input: x; output: y.
    pub fn halved_swiglu(device: &CudaDevice, kind: Dtype, rows: usize, columns: usize) -> Result<Self, NativeError> {
        swiglu(device, kind, (rows, columns), false)
    }

    /// Gradient of [`CudaKernel::halved_swiglu`]. Inputs: x, gradient of y; output: gradient of x.
    pub fn halved_swiglu_gradient(
        device: &CudaDevice,
        kind: Dtype,
        rows: usize,
        columns: usize,
    ) -> Result<Self, NativeError> {
        swiglu(device, kind, (rows, columns), true)
    }
}

fn swiglu(
    device: &CudaDevice,
    kind: Dtype,
    (rows, columns): (usize, usize),
    backward: bool,
) -> Result<CudaKernel, NativeError> {
    check_size("the number of rows", rows)?;
    let half = check_size("half the length of a row", columns / 2)?;
    let tile = SwigluTile::new(kind, half);
    let direction = if backward { "backward" } else { "forward" };
    let name = format!("swiglu_{direction}_{kind}");
    let of_half = rows * half * kind.width();
    let (reads, writes) = match backward {
        false => (vec![("x", 2 * of_half)], [("y", of_half)]),
        true => (vec![("x", 2 * of_half), ("dy", of_half)], [("dx", 2 * of_half)]),
    };
    let args = KernelArgs::new(reads, writes, (rows, 2 * half));
    let blocks = rows.div_ceil(tile.rows) * tile.blocks_per_row;
    let geometry = LaunchGeometry::new(blocks, (tile.threads, tile.rows))?;
    let macros = tile.macros(&name, kind, backward);
    let kernel = CudaKernel::prepare(device, CudaSource::Swiglu, &name, macros, args, geometry)?;
    let SwigluTile { width, threads, rows, blocks_per_row: parts } = tile;
    Ok(kernel.with_description(format!(
        "{name}: {threads} threads per row, {rows} rows per block, {parts} blocks per row, {VECTORS_PER_THREAD} accesses of {width} \
         elements of either half per thread"
    )))
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
