//! CUDA elementwise kernel for silu(gate) * up.

use super::Swiglu;
use crate::operators::native_plans;
use crate::operators::sequences::element_count;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, ElementwiseFunction};
use std::sync::Arc;

impl NativeOpen for Swiglu {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        native_plans::elementwise(&machine, spec, ElementwiseFunction::SiluMul, element_count(spec))?
            .open(self, spec, inputs, machine, sets)
    }
}
