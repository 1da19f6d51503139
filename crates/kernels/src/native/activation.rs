//! Element-wise activations.

use calorimeter_case::Activation as ActivationFunction;

use super::{
    CudaDevice, CudaKernel, NativeError,
    elementwise::{THREADS, describe_elementwise, elementwise_macros},
    kernel::{KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
};
use crate::Dtype;

/// Vector accesses per thread: two 16-byte loads in flight.
const VECTORS_PER_THREAD: usize = 2;

impl CudaKernel {
    /// Activation y = f(x) of `length` elements, computed in f32 and rounded to the dtype. Input: x; output: y. Can run
    /// in place.
    pub fn activation(
        device: &CudaDevice,
        kind: Dtype,
        function: ActivationFunction,
        length: usize,
    ) -> Result<Self, NativeError> {
        let geometry = LaunchGeometry::for_elements(kind, length, THREADS, VECTORS_PER_THREAD)?;
        let name = format!("{function}_{kind}");
        let (macros, args) = (macros(&name, kind, function), KernelArgs::for_matrix(kind, 1, length));
        let kernel = Self::prepare(device, CudaSource::Activation, &name, macros, args, geometry)?;
        Ok(kernel.in_place().with_description(describe_elementwise(&name, kind, VECTORS_PER_THREAD)))
    }
}

fn macros(name: &str, kind: Dtype, function: ActivationFunction) -> Vec<String> {
    [elementwise_macros(name, kind, VECTORS_PER_THREAD), vec![format!("ACTIVATE={function}")]].concat()
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
