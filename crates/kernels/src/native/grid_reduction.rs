//! Grid-wide reduction to one value: each block writes a partial result, and the last block to arrive combines them.

use super::{NativeError, kernel::CudaKernel, sizes::MULTIPROCESSORS};

/// Number of blocks of `threads` threads for work that `max_blocks` blocks could share, with `resident` threads per
/// multiprocessor. All blocks are resident and run the same number of iterations, so that no block idles at the end.
pub(super) fn block_count(max_blocks: usize, threads: usize, resident: usize) -> usize {
    let iterations = max_blocks.div_ceil(MULTIPROCESSORS * (resident / threads)).max(1);
    max_blocks.div_ceil(iterations)
}

/// Resident warps of the device for `resident` threads per multiprocessor.
pub(super) fn resident_warps(resident: usize) -> usize {
    MULTIPROCESSORS * resident / 32
}

/// Macro with the resident blocks per multiprocessor, which limits the registers per thread.
pub(super) fn occupancy_macro(threads: usize, resident: usize) -> String {
    format!("MIN_BLOCKS={}", resident / threads)
}

impl CudaKernel {
    /// Adds the partial results of `blocks` blocks and the arrival counter.
    pub(super) fn with_grid_reduction(self, blocks: usize) -> Result<Self, NativeError> {
        self.with_workspace(4 * blocks)?.with_workspace(4)
    }
}
