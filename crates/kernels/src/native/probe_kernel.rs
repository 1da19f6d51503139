//! CUDA kernels of [`crate::probes::NativeProbes`].

use super::{
    CudaDevice, CudaKernel, NativeError,
    kernel::{KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
};
use crate::probes::{
    chain::{INCREMENT, MULTIPLIER, SHIFT},
    task::{ACCESS, WORDS_PER_SUM},
};

const THREADS: usize = 256;
/// Vector loads in flight per thread of a copy.
const COPY_VECTORS_PER_THREAD: usize = 4;
/// Vector loads in flight per thread of a sum; one block computes one sum.
const SUM_VECTORS_PER_THREAD: usize = WORDS_PER_SUM * 4 / ACCESS / THREADS;

impl CudaKernel {
    /// Spin kernel: takes `steps` steps along the chain from one word to another.
    pub(crate) fn probe_spin(device: &CudaDevice, steps: u64) -> Result<Self, NativeError> {
        let args = KernelArgs::new([("x", 4)], [("y", 4)], (steps as usize, 0));
        Self::prepare(device, CudaSource::Spin, "probe_spin", spin_macros(), args, LaunchGeometry::new(1, (1, 1))?)
    }

    /// Copy kernel for `words` words, which must be whole vectors.
    pub(crate) fn probe_copy(device: &CudaDevice, words: usize) -> Result<Self, NativeError> {
        traffic(device, "probe_copy", words, words, COPY_VECTORS_PER_THREAD)
    }

    /// Sum kernel for `words` words, which must be whole vectors; writes one sum per [`WORDS_PER_SUM`] words.
    pub(crate) fn probe_sum(device: &CudaDevice, words: usize) -> Result<Self, NativeError> {
        traffic(device, "probe_sum", words, words.div_ceil(WORDS_PER_SUM), SUM_VECTORS_PER_THREAD)
    }
}

fn traffic(
    device: &CudaDevice,
    name: &str,
    words: usize,
    results: usize,
    pieces_per_thread: usize,
) -> Result<CudaKernel, NativeError> {
    let pieces = words * 4 / ACCESS;
    let geometry = LaunchGeometry::new(pieces.div_ceil(THREADS * pieces_per_thread), (THREADS, 1))?;
    let args = KernelArgs::new([("x", 4 * words)], [("y", 4 * results)], (pieces, results));
    CudaKernel::prepare(device, CudaSource::BandwidthProbe, name, traffic_macros(pieces_per_thread), args, geometry)
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
