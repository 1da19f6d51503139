//! One number of a whole grid: what its blocks leave for the last of them.

use std::sync::Arc;

use super::{
    Machine, NativeError,
    driver::Memory,
    kernel::{Extent, Kernel},
    sizes::MULTIPROCESSORS,
};

/// The parts of all blocks, and how many blocks have left theirs.
#[derive(Debug)]
pub(super) struct GridTotal {
    parts: Memory,
    arrived: Memory,
}

impl GridTotal {
    /// How many blocks of so many threads go through work that has turns for `most`, where `resident` threads share a
    /// multiprocessor: of those that run at once no more than it takes for the same number of turns, so that none waits for
    /// others at the end.
    pub(super) fn blocks(most: usize, threads: usize, resident: usize) -> usize {
        let turns = most.div_ceil(MULTIPROCESSORS * (resident / threads)).max(1);
        most.div_ceil(turns)
    }

    /// Warps that run at once where so many threads share a multiprocessor.
    pub(super) fn warps(resident: usize) -> usize {
        MULTIPROCESSORS * resident / 32
    }

    /// The blocks that share a multiprocessor as a macro of a source, by which registers are dealt out.
    pub(super) fn macros(threads: usize, resident: usize) -> String {
        format!("AT_ONCE={}", resident / threads)
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
