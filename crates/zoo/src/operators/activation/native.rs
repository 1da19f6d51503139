//! CUDA elementwise kernel for the activations.

use super::ElementwiseActivation;
use crate::operators::native_plans;
use crate::operators::sequences::element_count;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, ElementwiseFunction};
use std::sync::Arc;

impl NativeOpen for ElementwiseActivation {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let function = match self {
            Self::Gelu => ElementwiseFunction::Gelu,
            Self::GeluTanh => ElementwiseFunction::GeluTanh,
            Self::Silu => ElementwiseFunction::Silu,
        };
        native_plans::elementwise(&machine, spec, function, element_count(spec))?
            .open(self, spec, inputs, machine, sets)
    }
}
