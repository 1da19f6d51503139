//! CUDA kernel for SwiGLU of two halves and its gradient.

use super::HalvedSwiglu;
use crate::native::{BufferSet, NativePass};
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{self, CudaDevice};
use std::sync::Arc;

impl NativePlanner for HalvedSwiglu {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (m, n) = (spec.axis("m") as usize, spec.axis("n") as usize);
        let plan = match self {
            Self::Forward => native::HalvedSwigluPlan::forward(device, spec.dtype(), m, n)?,
            Self::Backward => native::HalvedSwigluPlan::backward(device, spec.dtype(), m, n)?,
        };
        Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
            plan.enqueue(&inputs.iter().collect::<Vec<_>>(), &mut outputs[0])
        }))
    }
}
