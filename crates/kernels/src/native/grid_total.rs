//! One number of a whole grid: what its blocks leave for the last of them.

use std::sync::Arc;

use super::{
    Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Kernel},
};

/// The parts of all blocks, and how many blocks have left theirs.
#[derive(Debug)]
pub(super) struct GridTotal {
    parts: Memory,
    arrived: Memory,
}

impl GridTotal {
    /// Multiprocessors of an H100 or H200.
    const MULTIPROCESSORS: usize = 132;
    /// Threads of up to 48 registers that share a multiprocessor, in blocks of 256.
    const THREADS: usize = 1280;

    /// How many blocks of so many threads go through work that has turns for `most`: as many as run at once.
    pub(super) fn blocks(most: usize, threads: usize) -> usize {
        (Self::MULTIPROCESSORS * Self::at_once(threads)).min(most)
    }

    /// The same as a macro of a source, by which registers are dealt out.
    pub(super) fn macros(threads: usize) -> String {
        format!("AT_ONCE={}", Self::at_once(threads))
    }

    /// Blocks of so many threads that share a multiprocessor.
    fn at_once(threads: usize) -> usize {
        Self::THREADS / threads
    }

    /// Room for the parts of `blocks` blocks, which are added to what a kernel writes.
    pub(super) fn new(machine: &Arc<Machine>, blocks: usize, extent: &mut Extent) -> Result<Self, NativeError> {
        extent.writes.extend([("parts", 4 * blocks), ("arrived", 4)]);
        let parts = Memory::allocate(machine.stream(), 4 * blocks)?;
        let mut arrived = Memory::allocate(machine.stream(), 4)?;
        arrived.fill(0)?;
        Ok(Self { parts, arrived })
    }

    /// Enqueues one run of that kernel.
    pub(super) fn enqueue(&mut self, kernel: &Kernel, inputs: &[&Memory], y: &mut Memory) -> Result<(), NativeError> {
        kernel.enqueue_all(inputs, &mut [y, &mut self.parts, &mut self.arrived])
    }
}
