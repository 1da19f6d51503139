//! By CUDA's libraries and kernels of ours.

use super::HbmCopy;
use crate::native::{NativePass, Set};
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::Machine;
use std::sync::Arc;

impl NativeOpen for HbmCopy {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        // What a framework's copy is, too.
        let copy = |set: &mut Set| set.outputs[0].copy_from(&set.inputs[0]);
        NativePass::single("a copy by the driver".into(), copy).open(self, spec, inputs, machine, sets)
    }
}
