//! CUDA softmax kernel.

use super::Softmax;
use crate::native::{BufferSet, NativePass};
use crate::operators::sequences::size;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{self, CudaDevice};
use std::sync::Arc;

impl NativePlanner for Softmax {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (rows, columns) = size(spec);
        let plan = native::SoftmaxPlan::new(device, spec.dtype(), rows as usize, columns as usize)?;
        Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
            plan.enqueue(&inputs[0], &mut outputs[0])
        }))
    }
}
