//! CUDA pair reduction kernel.

use super::MseLoss;
use crate::operators::native_plans;
use crate::operators::sequences::count;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::{Machine, PairFunction};
use std::sync::Arc;

impl NativeOpen for MseLoss {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        native_plans::pair_sum(&machine, spec, PairFunction::MeanSquaredDifference, count(spec))?
            .open(self, spec, inputs, machine, sets)
    }
}
