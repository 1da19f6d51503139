//! The kernels of known cost behind [`crate::probes::NativeProbes`].

use super::{
    Buffer, Machine, NativeError,
    kernel::{Extent, Geometry, Kernel},
    nvrtc::Source,
    sizes::checked_size,
};
use crate::probes::{
    chain::{INCREMENT, MULTIPLIER, SHIFT},
    task::{ACCESS, WORDS_PER_SUM},
};

/// A kernel that does nothing but spin, copy or add up.
#[derive(Debug)]
pub(crate) struct ProbeKernel {
    kernel: Kernel,
}

const THREADS: usize = 256;
/// Loads that each thread of a copy has in flight.
const PIECES_TO_COPY: usize = 4;
/// Loads that each thread of a sum has in flight, so that each block makes one sum.
const PIECES_TO_SUM: usize = WORDS_PER_SUM * 4 / ACCESS / THREADS;

impl ProbeKernel {
    /// From one word to another, `steps` steps along the chain.
    pub(crate) fn spin(machine: &Machine, steps: u64) -> Result<Self, NativeError> {
        let extent = Extent { reads: vec![("x", 4)], writes: vec![("y", 4)], sizes: (steps, 0) };
        let geometry = Geometry { blocks: 1, threads: (1, 1) };
        Self::prepare(machine, Source::Spin, "probe_spin", spin_macros(), extent, geometry)
    }

    /// All of so many words, which are whole accesses.
    pub(crate) fn copy(machine: &Machine, words: usize) -> Result<Self, NativeError> {
        Self::traffic(machine, "probe_copy", words, words, PIECES_TO_COPY)
    }

    /// From so many words, which are whole accesses, to the sum of each [`WORDS_PER_SUM`].
    pub(crate) fn sum(machine: &Machine, words: usize) -> Result<Self, NativeError> {
        Self::traffic(machine, "probe_sum", words, words.div_ceil(WORDS_PER_SUM), PIECES_TO_SUM)
    }

    fn traffic(
        machine: &Machine,
        name: &str,
        words: usize,
        results: usize,
        pieces_per_thread: usize,
    ) -> Result<Self, NativeError> {
        let pieces = words * 4 / ACCESS;
        let blocks = checked_size("the number of blocks", pieces.div_ceil(THREADS * pieces_per_thread))?;
        let extent = Extent {
            reads: vec![("x", 4 * words)],
            writes: vec![("y", 4 * results)],
            sizes: (pieces as u64, results as u64),
        };
        let geometry = Geometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        Self::prepare(machine, Source::Traffic, name, traffic_macros(pieces_per_thread), extent, geometry)
    }

    fn prepare(
        machine: &Machine,
        source: Source,
        name: &str,
        macros: Vec<String>,
        extent: Extent,
        geometry: Geometry,
    ) -> Result<Self, NativeError> {
        Ok(Self { kernel: Kernel::prepare(machine, source, name, macros, extent, geometry)? })
    }

    /// Enqueues one run.
    pub(crate) fn enqueue(&self, x: &Buffer, y: &mut Buffer) -> Result<(), NativeError> {
        self.kernel.enqueue(&x.memory, &mut y.memory)
    }
}

fn spin_macros() -> Vec<String> {
    vec![format!("MULTIPLIER={MULTIPLIER}u"), format!("INCREMENT={INCREMENT}u"), format!("SHIFT={SHIFT}")]
}

fn traffic_macros(pieces_per_thread: usize) -> Vec<String> {
    vec![format!("THREADS={THREADS}"), format!("PIECES={pieces_per_thread}")]
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    fn the_sources_compile() {
        assert_compiles(Source::Spin, &spin_macros());
        for pieces in [PIECES_TO_COPY, PIECES_TO_SUM] {
            assert_compiles(Source::Traffic, &traffic_macros(pieces));
        }
    }

    #[test]
    fn a_block_of_the_sum_adds_up_exactly_what_makes_one_result() {
        assert_eq!(THREADS * PIECES_TO_SUM * ACCESS, 4 * WORDS_PER_SUM);
    }
}
