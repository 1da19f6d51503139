//! CUDA layer normalization kernel.

use super::LayerNorm;
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{AffineNormVariant, CudaDevice};
use std::sync::Arc;

impl NativeOpen for LayerNorm {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        native_plans::layer_norm(&machine, spec, AffineNormVariant::Plain)?.open(self, spec, inputs, machine, sets)
    }
}
