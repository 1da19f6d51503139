//! CUDA elementwise kernel for the activations.

use super::ElementwiseActivation;
use crate::operators::native_plans;
use crate::operators::sequences::count;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{ElementwiseFunction, Machine};
use std::sync::Arc;

impl NativeOpen for ElementwiseActivation {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let function = match self {
            Self::Gelu => ElementwiseFunction::Gelu,
            Self::GeluTanh => ElementwiseFunction::GeluTanh,
            Self::Silu => ElementwiseFunction::Silu,
        };
        native_plans::elementwise(&machine, spec, function, count(spec))?.open(self, spec, inputs, machine, sets)
    }
}
