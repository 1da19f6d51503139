//! Reductions of two vectors to one value.

use super::{
    CudaDevice, CudaKernel, NativeError,
    elementwise::{THREADS, elementwise_macros},
    grid_reduction::{block_count, occupancy_macro},
    kernel::{KernelArgs, LaunchGeometry, vector_width},
    nvrtc::CudaSource,
    sizes::check_elements,
};
use crate::Dtype;

/// Reduction of two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairReduction {
    /// Dot product.
    Dot,
    /// Mean squared difference.
    MeanSquaredDifference,
}

impl PairReduction {
    fn name(self) -> &'static str {
        match self {
            Self::Dot => "dot",
            Self::MeanSquaredDifference => "mean_squared_difference",
        }
    }

    /// Function name in the CUDA source.
    fn term(self) -> &'static str {
        match self {
            Self::Dot => "dot_term",
            Self::MeanSquaredDifference => "squared_difference",
        }
    }

    fn divisor(self, length: usize) -> usize {
        match self {
            Self::Dot => 1,
            Self::MeanSquaredDifference => length,
        }
    }
}

/// Resident threads per multiprocessor with up to 48 registers each.
const RESIDENT_THREADS: usize = 1280;
/// Vector accesses per thread and operand: four 16-byte loads in flight.
const VECTORS_PER_THREAD: usize = 2;

impl CudaKernel {
    /// Reduction of two vectors of `length` elements to one f32, accumulated in f32 in a deterministic order. Inputs:
    /// a, b; output: a single f32.
    pub fn pair_reduction(
        device: &CudaDevice,
        kind: Dtype,
        function: PairReduction,
        length: usize,
    ) -> Result<Self, NativeError> {
        let width = vector_width(kind);
        check_elements(length, width)?;
        let max_blocks = (length / width).div_ceil(THREADS * VECTORS_PER_THREAD).max(1);
        let blocks = block_count(max_blocks, THREADS, RESIDENT_THREADS);
        let name = format!("{}_{kind}", function.name());
        let bytes = length * kind.width();
        let args = KernelArgs::new([("a", bytes), ("b", bytes)], [("y", 4)], (length, function.divisor(length)));
        let (macros, geometry) = (macros(&name, kind, function), LaunchGeometry::new(blocks, (THREADS, 1))?);
        let kernel = Self::prepare(device, CudaSource::PairReduction, &name, macros, args, geometry)?;
        let description = format!(
            "{name}: {blocks} blocks of {THREADS} threads, {VECTORS_PER_THREAD} accesses of {width} elements of each vector per \
             thread in flight, reduction in the last block"
        );
        Ok(kernel.with_grid_reduction(blocks)?.with_description(description))
    }
}

fn macros(name: &str, kind: Dtype, function: PairReduction) -> Vec<String> {
    let own = vec![occupancy_macro(THREADS, RESIDENT_THREADS), format!("TERM={}", function.term())];
    [elementwise_macros(name, kind, VECTORS_PER_THREAD), own].concat()
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_function_and_dtype() {
        for kind in Dtype::ALL {
            for function in [PairReduction::Dot, PairReduction::MeanSquaredDifference] {
                assert_compiles(CudaSource::PairReduction, &macros("pair_sum", kind, function));
            }
        }
    }
}
