//! CUDA kernels of [`crate::probes::NativeProbes`].

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
    sizes::check_size,
};
use crate::probes::{
    chain::{INCREMENT, MULTIPLIER, SHIFT},
    task::{ACCESS, WORDS_PER_SUM},
};

/// Probe kernel: spin, copy or sum.
#[derive(Debug)]
pub(crate) struct ProbeKernel {
    kernel: CudaKernel,
}

const THREADS: usize = 256;
/// Vector loads in flight per thread of a copy.
const COPY_VECTORS_PER_THREAD: usize = 4;
/// Vector loads in flight per thread of a sum; one block computes one sum.
const SUM_VECTORS_PER_THREAD: usize = WORDS_PER_SUM * 4 / ACCESS / THREADS;

impl ProbeKernel {
    /// Spin kernel: takes `steps` steps along the chain from one word to another.
    pub(crate) fn spin(device: &CudaDevice, steps: u64) -> Result<Self, NativeError> {
        let extent = KernelArgs { reads: vec![("x", 4)], writes: vec![("y", 4)], sizes: (steps, 0) };
        let geometry = LaunchGeometry { blocks: 1, threads: (1, 1) };
        Self::prepare(device, CudaSource::Spin, "probe_spin", spin_macros(), extent, geometry)
    }

    /// Copy kernel for `words` words, which must be whole vectors.
    pub(crate) fn copy(device: &CudaDevice, words: usize) -> Result<Self, NativeError> {
        Self::traffic(device, "probe_copy", words, words, COPY_VECTORS_PER_THREAD)
    }

    /// Sum kernel for `words` words, which must be whole vectors; writes one sum per [`WORDS_PER_SUM`] words.
    pub(crate) fn sum(device: &CudaDevice, words: usize) -> Result<Self, NativeError> {
        Self::traffic(device, "probe_sum", words, words.div_ceil(WORDS_PER_SUM), SUM_VECTORS_PER_THREAD)
    }

    fn traffic(
        device: &CudaDevice,
        name: &str,
        words: usize,
        results: usize,
        pieces_per_thread: usize,
    ) -> Result<Self, NativeError> {
        let pieces = words * 4 / ACCESS;
        let blocks = check_size("the number of blocks", pieces.div_ceil(THREADS * pieces_per_thread))?;
        let extent = KernelArgs {
            reads: vec![("x", 4 * words)],
            writes: vec![("y", 4 * results)],
            sizes: (pieces as u64, results as u64),
        };
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        Self::prepare(device, CudaSource::BandwidthProbe, name, traffic_macros(pieces_per_thread), extent, geometry)
    }

    fn prepare(
        device: &CudaDevice,
        source: CudaSource,
        name: &str,
        macros: Vec<String>,
        extent: KernelArgs,
        geometry: LaunchGeometry,
    ) -> Result<Self, NativeError> {
        Ok(Self { kernel: CudaKernel::prepare(device, source, name, macros, extent, geometry)? })
    }

    /// Enqueues a launch.
    pub(crate) fn enqueue(&self, x: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue(&x.memory, &mut y.memory)
    }
}

fn spin_macros() -> Vec<String> {
    vec![format!("MULTIPLIER={MULTIPLIER}u"), format!("INCREMENT={INCREMENT}u"), format!("SHIFT={SHIFT}")]
}

fn traffic_macros(pieces_per_thread: usize) -> Vec<String> {
    vec![format!("THREADS={THREADS}"), format!("VECTORS_PER_THREAD={pieces_per_thread}")]
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn sources_compile() {
        assert_compiles(CudaSource::Spin, &spin_macros());
        for pieces in [COPY_VECTORS_PER_THREAD, SUM_VECTORS_PER_THREAD] {
            assert_compiles(CudaSource::BandwidthProbe, &traffic_macros(pieces));
        }
    }

    #[test]
    fn one_block_computes_one_sum() {
        assert_eq!(THREADS * SUM_VECTORS_PER_THREAD * ACCESS, 4 * WORDS_PER_SUM);
    }
}
