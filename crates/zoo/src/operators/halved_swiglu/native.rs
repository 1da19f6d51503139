//! CUDA kernel for SwiGLU of two halves and its gradient.

use super::HalvedSwiglu;
use crate::native::NativePass;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{CudaDevice, CudaKernel};
use std::sync::Arc;

impl NativePlanner for HalvedSwiglu {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (m, n) = (spec.axis("m") as usize, spec.axis("n") as usize);
        Ok(NativePass::of(match self {
            Self::Forward => CudaKernel::halved_swiglu(device, spec.dtype(), m, n)?,
            Self::Backward => CudaKernel::halved_swiglu_gradient(device, spec.dtype(), m, n)?,
        }))
    }
}
