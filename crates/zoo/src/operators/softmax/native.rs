//! CUDA softmax kernel.

use super::Softmax;
use crate::native::{BufferSet, NativePass};
use crate::operators::sequences::size;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{self, CudaDevice};
use std::sync::Arc;

impl NativeOpen for Softmax {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (rows, columns) = size(spec);
        let plan = native::SoftmaxPlan::new(&machine, spec.dtype(), rows as usize, columns as usize)?;
        NativePass::single(plan.algorithm().to_owned(), move |BufferSet { inputs, outputs, .. }| {
            plan.enqueue(&inputs[0], &mut outputs[0])
        })
        .open(self, spec, inputs, machine, sets)
    }
}
