//! CUDA elementwise kernel.

use super::Elementwise;
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, ElementwiseFunction};
use std::sync::Arc;

impl NativeOpen for Elementwise {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        let function = match self {
            Self::TrainingAdd | Self::Add => ElementwiseFunction::Add,
            Self::SiluMul => ElementwiseFunction::SiluMul,
            Self::Sigmoid => ElementwiseFunction::Sigmoid,
        };
        native_plans::elementwise(&machine, spec, function, spec.axis("m") * spec.axis("n"))?
            .open(self, spec, inputs, machine, sets)
    }
}
