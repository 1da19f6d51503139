//! Gradients of silu(a) b.

use std::sync::Arc;

use super::{
    CudaDevice, DeviceBuffer, NativeError,
    kernel::{CudaKernel, KernelArgs, LaunchGeometry, common_macros, vector_width},
    nvrtc::CudaSource,
};
use crate::Dtype;

/// Plan of the gradients of a and b, from both and the gradient of silu(a) b. Computed in f32.
#[derive(Debug)]
pub struct SiluMulGradientPlan {
    kernel: CudaKernel,
    algorithm: String,
}

const THREADS: usize = 256;
/// Vector accesses per thread and operand: six 16-byte loads in flight.
const VECTORS_PER_THREAD: usize = 2;

impl SiluMulGradientPlan {
    /// Compiles for `length` elements.
    pub fn new(device: &Arc<CudaDevice>, kind: Dtype, length: usize) -> Result<Self, NativeError> {
        let width = vector_width(kind);
        // Well within the range of a grid.
        let limit = (i32::MAX as usize) * width;
        if !(1..=limit).contains(&length) {
            return Err(NativeError::InvalidSize { what: "the number of elements", limit, value: length });
        }
        let blocks = (length / width).div_ceil(THREADS * VECTORS_PER_THREAD).max(1);
        let name = format!("silu_mul_gradient_{kind}");
        let geometry = LaunchGeometry { blocks: blocks as u32, threads: (THREADS as u32, 1) };
        let bytes = length * kind.width();
        let extent = KernelArgs {
            reads: vec![("a", bytes), ("b", bytes), ("dy", bytes)],
            writes: vec![("da", bytes), ("db", bytes)],
            sizes: (length as u64, 0),
        };
        let macros = macros(&name, kind);
        Ok(Self {
            kernel: CudaKernel::prepare(device, CudaSource::SiluMulGradient, &name, macros, extent, geometry)?,
            algorithm: format!(
                "{name}: {THREADS} threads per block, {VECTORS_PER_THREAD} accesses of {width} elements per thread"
            ),
        })
    }

    /// Enqueues a launch on a, b and the upstream gradient.
    pub fn enqueue(
        &self,
        [a, b, dy]: [&DeviceBuffer; 3],
        da: &mut DeviceBuffer,
        db: &mut DeviceBuffer,
    ) -> Result<(), NativeError> {
        self.kernel.enqueue_all(&[&a.memory, &b.memory, &dy.memory], &mut [&mut da.memory, &mut db.memory])
    }

    /// Kernel name and launch configuration.
    pub fn algorithm(&self) -> &str {
        &self.algorithm
    }
}

fn macros(name: &str, kind: Dtype) -> Vec<String> {
    let mut macros = common_macros(name, kind, vector_width(kind));
    macros.push(format!("THREADS={THREADS}"));
    macros.push(format!("VECTORS_PER_THREAD={VECTORS_PER_THREAD}"));
    macros
}

#[cfg(test)]
mod tests {
    use super::super::nvrtc::tests::assert_compiles;
    use super::*;

    #[test]
    #[ignore = "needs NVRTC"]
    fn source_compiles_for_every_dtype() {
        for kind in Dtype::ALL {
            assert_compiles(CudaSource::SiluMulGradient, &macros("gradients", kind));
        }
    }
}
