//! Gradients of silu(a) b.

use super::{
    CudaDevice, CudaKernel, NativeError,
    elementwise::{THREADS, describe_elementwise, elementwise_macros},
    kernel::{KernelArgs, LaunchGeometry},
    nvrtc::CudaSource,
};
use crate::Dtype;

/// Vector accesses per thread and operand: six 16-byte loads in flight.
const VECTORS_PER_THREAD: usize = 2;

impl CudaKernel {
    /// Gradients of silu(a) b for `length` elements, computed in f32. Inputs: a, b, upstream gradient; outputs:
    /// gradients of a and b.
    pub fn silu_mul_gradient(device: &CudaDevice, kind: Dtype, length: usize) -> Result<Self, NativeError> {
        let geometry = LaunchGeometry::for_elements(kind, length, THREADS, VECTORS_PER_THREAD)?;
        let name = format!("silu_mul_gradient_{kind}");
        let bytes = length * kind.width();
        let (reads, writes) = (["a", "b", "dy"], ["da", "db"]);
        let args = KernelArgs::new(reads.map(|what| (what, bytes)), writes.map(|what| (what, bytes)), (length, 0));
        let macros = elementwise_macros(&name, kind, VECTORS_PER_THREAD);
        let kernel = Self::prepare(device, CudaSource::SiluMulGradient, &name, macros, args, geometry)?;
        Ok(kernel.with_description(describe_elementwise(&name, kind, VECTORS_PER_THREAD)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_dtype() {
        for kind in Dtype::ALL {
            assert_compiles(CudaSource::SiluMulGradient, &elementwise_macros("gradients", kind, VECTORS_PER_THREAD));
        }
    }
}
