//! Reductions of two vectors to one value.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    grid_reduction::GridReduction,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
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

/// Plan of a reduction of two vectors to one f32, accumulated in f32 in a deterministic order.
#[derive(Debug)]
pub struct PairReductionPlan {
    kernel: CudaKernel,
    total: GridReduction,
    algorithm: String,
}

const THREADS: usize = 256;
/// Resident threads per multiprocessor with up to 48 registers each.
const RESIDENT_THREADS: usize = 1280;
/// Vector accesses per thread and operand: four 16-byte loads in flight.
const VECTORS_PER_THREAD: usize = 2;

impl PairReductionPlan {
    /// Compiles for vectors of `length` elements.
    pub fn new(
        device: &Arc<CudaDevice>,
        kind: Dtype,
        function: PairReduction,
        length: usize,
    ) -> Result<Self, NativeError> {
        let width = vector_width(kind);
        let limit = (i32::MAX as usize) * width;
        if !(1..=limit).contains(&length) {
            return Err(NativeError::InvalidSize { what: "the number of elements", limit, value: length });
        }
        let blocks = GridReduction::blocks(
            (length / width).div_ceil(THREADS * VECTORS_PER_THREAD).max(1),
            THREADS,
            RESIDENT_THREADS,
        );
        let name = format!("{}_{kind}", function.name());
        let bytes = length * kind.width();
        let mut extent = KernelArgs {
            reads: vec![("a", bytes), ("b", bytes)],
            writes: vec![("y", 4)],
            sizes: (length as u64, function.divisor(length) as u64),
        };
        let total = GridReduction::new(device, blocks, &mut extent)?;
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let macros = macros(&name, kind, function);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::PairReduction, &name, macros, extent, geometry)?,
            total,
            algorithm: format!(
                "{name}: {blocks} blocks of {THREADS} threads, {VECTORS_PER_THREAD} accesses of {width} elements of each vector per \
                 thread in flight, reduction in the last block"
            ),
        })
    }

    /// Enqueues a launch; y is a single f32.
    pub fn enqueue(&mut self, a: &DeviceBuffer, b: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.total.enqueue(&self.kernel, &[&a.memory, &b.memory], &mut y.memory)
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, function: PairReduction) -> Vec<String> {
    let mut macros = common_macros(name, kind, vector_width(kind));
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("VECTORS_PER_THREAD={VECTORS_PER_THREAD}"));
    macros.push(GridReduction::occupancy_macro(THREADS, RESIDENT_THREADS));
    macros.push(format!("TERM={}", function.term()));
    macros
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
