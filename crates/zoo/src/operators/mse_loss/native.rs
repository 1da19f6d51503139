//! CUDA pair reduction kernel.

use super::MseLoss;
use crate::operators::native_plans;
use crate::operators::sequences::element_count;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{CudaDevice, PairReduction};
use std::sync::Arc;

impl NativeOpen for MseLoss {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<CudaDevice>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        native_plans::pair_reduction(&machine, spec, PairReduction::MeanSquaredDifference, element_count(spec))?
            .open(self, spec, inputs, machine, sets)
    }
}
