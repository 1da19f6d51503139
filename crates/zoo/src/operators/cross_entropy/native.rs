//! CUDA cross-entropy kernel.

use super::CrossEntropy;
use crate::native::{BufferSet, NativePass};
use crate::operators::sequences::size;
use crate::{NativePlanner, Spec, ZooError};
use calorimeter_kernels::native::{self, CudaDevice};
use std::sync::Arc;

impl NativePlanner for CrossEntropy {
    fn plan(&self, device: &Arc<CudaDevice>, spec: &Spec) -> Result<NativePass, ZooError> {
        let (rows, classes) = size(spec);
        let mut plan = native::CrossEntropyPlan::new(device, spec.dtype(), rows as usize, classes as usize)?;
        Ok(NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
            plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
        }))
    }
}
