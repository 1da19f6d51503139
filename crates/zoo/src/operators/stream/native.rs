//! STREAM on CUDA by the elementwise kernel.

use super::{FACTOR, Stream};
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::CudaDevice;
use calorimeter_recipes::FloatType;
use std::sync::Arc;

impl NativeOpen for Stream {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        use calorimeter_kernels::native::ElementwiseFunction as Function;
        let function = match self {
            Self::Copy => Function::Copy,
            Self::Scale => Function::Scale(spec.dtype().round(FACTOR)),
            Self::Add => Function::Add,
            Self::Triad => Function::Triad(spec.dtype().round(FACTOR)),
        };
        native_plans::elementwise(&machine, spec, function, spec.axis("elements"))?
            .open(self, spec, inputs, machine, sets)
    }
}
