//! CUDA kernel for SwiGLU of two halves and its gradient.

use super::HalvedSwiglu;
use crate::native::{BufferSet, NativePass};
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{self, CudaDevice};
use std::sync::Arc;

impl NativeOpen for HalvedSwiglu {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (m, n) = (spec.axis("m") as usize, spec.axis("n") as usize);
        let plan = match self {
            Self::Forward => native::HalvedSwigluPlan::forward(&machine, spec.dtype(), m, n)?,
            Self::Backward => native::HalvedSwigluPlan::backward(&machine, spec.dtype(), m, n)?,
        };
        NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
            plan.enqueue(&inputs.iter().collect::<Vec<_>>(), &mut outputs[0])
        })
        .open(self, spec, inputs, machine, sets)
    }
}
