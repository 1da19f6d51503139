//! By CUDA's libraries and kernels of ours.

use super::Blas;
use crate::operators::native_plans;
use crate::{Matrix, NativeOpen, Spec, Workload, ZooError};
use calorimeter_kernels::native::Machine;
use std::sync::Arc;

impl NativeOpen for Blas {
    fn open(
        &self,
        spec: &Spec,
        inputs: &[Matrix],
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        use calorimeter_kernels::native::{LinearForm, WeightLayout};
        // Registered for the product of matrices alone.
        let form = LinearForm { weight: WeightLayout::AlongN, ..LinearForm::plain(spec.dtype()) };
        native_plans::product(&machine, spec, form)?.open(self, spec, inputs, machine, sets)
    }
}
