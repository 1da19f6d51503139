//! CUDA layer normalization kernel with a GELU epilogue.

use super::LnGelu;
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{AffineNormVariant, CudaDevice};
use std::sync::Arc;

impl NativeOpen for LnGelu {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        native_plans::layer_norm(&machine, spec, AffineNormVariant::WithGelu)?.open(self, spec, inputs, machine, sets)
    }
}
