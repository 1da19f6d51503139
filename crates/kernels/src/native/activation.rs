//! Element-wise activations.

use calorimeter_case::Activation as ActivationFunction;
use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
};
use crate::Dtype;

/// Plan of y = f(x) for every element, computed in f32 and rounded to the dtype.
#[derive(Debug)]
pub struct ActivationPlan {
    kernel: CudaKernel,
    algorithm: String,
}

const THREADS: usize = 256;
/// Vector accesses per thread: two 16-byte loads in flight.
const VECTORS_PER_THREAD: usize = 2;

impl ActivationPlan {
    /// Compiles for `length` elements.
    pub fn new(
        device: &Arc<CudaDevice>,
        kind: Dtype,
        function: ActivationFunction,
        length: usize,
    ) -> Result<Self, NativeError> {
        let width = vector_width(kind);
        // Well within the range of a grid.
        let limit = (i32::MAX as usize) * width;
        if !(1..=limit).contains(&length) {
            return Err(NativeError::InvalidSize { what: "the number of elements", limit, value: length });
        }
        let blocks = (length / width).div_ceil(THREADS * VECTORS_PER_THREAD).max(1);
        let name = format!("{function}_{kind}");
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let (macros, extent) = (macros(&name, kind, function), KernelArgs::for_matrix(kind, 1, length));
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::Activation, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: {THREADS} threads per block, {VECTORS_PER_THREAD} accesses of {width} elements per thread"
            ),
        })
    }

    /// Bytes of the input, and of the output.
    pub fn bytes(&self) -> usize {
        self.kernel.first_input_bytes()
    }

    /// Enqueues a launch.
    pub fn enqueue(&self, x: &DeviceBuffer, y: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue(&x.memory, &mut y.memory)
    }

    /// Enqueues an in-place launch.
    pub fn enqueue_in_place(&self, x: &mut DeviceBuffer) -> Result<(), NativeError> {
        self.kernel.enqueue_in_place(&mut x.memory)
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype, function: ActivationFunction) -> Vec<String> {
    let mut macros = common_macros(name, kind, vector_width(kind));
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("VECTORS_PER_THREAD={VECTORS_PER_THREAD}"));
    macros.push(format!("ACTIVATE={function}"));
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
            for function in ActivationFunction::ALL {
                assert_compiles(CudaSource::Activation, &macros("activation", kind, function));
            }
        }
    }
}
