//! CUDA kernel that adds and normalizes in one pass.

use super::AddLn;
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{AffineNormVariant, CudaDevice};
use std::sync::Arc;

impl NativeOpen for AddLn {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        native_plans::layer_norm(&machine, spec, AffineNormVariant::WithResidual)?
            .open(self, spec, inputs, machine, sets)
    }
}
