//! Grid-wide reduction to one value: each block writes a partial result, and the last block to arrive combines them.

use std::sync::Arc;

use super::{
    CudaDevice, NativeError,
    driver::DeviceMemory,
    kernel::{CudaKernel, KernelArgs},
    sizes::MULTIPROCESSORS,
};

/// Partial results of all blocks, and the arrival counter.
#[derive(Debug)]
pub(super) struct GridReduction {
    partials: DeviceMemory,
    arrivals: DeviceMemory,
}

impl GridReduction {
    /// Number of blocks of `threads` threads for work that `max_blocks` blocks could share, with `resident` threads per
    /// multiprocessor. All blocks are resident and run the same number of iterations, so that no block idles at the
    /// end.
    pub(super) fn blocks(max_blocks: usize, threads: usize, resident: usize) -> usize {
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

    /// Allocates the workspace for `blocks` blocks and adds it to the outputs of the kernel.
    pub(super) fn new(device: &Arc<CudaDevice>, blocks: usize, extent: &mut KernelArgs) -> Result<Self, NativeError> {
        extent.writes.extend([("partials", 4 * blocks), ("arrivals", 4)]);
        let parts = DeviceMemory::allocate(device.stream(), 4 * blocks)?;
        let mut arrived = DeviceMemory::allocate(device.stream(), 4)?;
        arrived.fill(0)?;
        Ok(Self { partials: parts, arrivals: arrived })
    }

    /// Enqueues a launch.
    pub(super) fn enqueue(
        &mut self,
        kernel: &CudaKernel,
        inputs: &[&DeviceMemory],
        y: &mut DeviceMemory,
    ) -> Result<(), NativeError> {
        kernel.enqueue_all(inputs, &mut [y, &mut self.partials, &mut self.arrivals])
    }
}
