//! CUDA cross-entropy kernel.

use super::CrossEntropy;
use crate::native::{NativePass, Set};
use crate::operators::sequences::size;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{self, Machine};
use std::sync::Arc;

impl NativeOpen for CrossEntropy {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let (rows, classes) = size(spec);
        let mut plan = native::CrossEntropy::new(&machine, spec.dtype(), rows as usize, classes as usize)?;
        NativePass::single(plan.algorithm().to_owned(), move |Set { inputs, outputs, .. }| {
            plan.enqueue(&inputs[0], &inputs[1], &mut outputs[0])
        })
        .open(self, spec, inputs, machine, sets)
    }
}
