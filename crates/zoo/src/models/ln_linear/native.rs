//! `ln_linear_<activation>` on CUDA.

use super::LnLinear;
use crate::native::linear;
use crate::{NativeModel, Problem, Tensors, Workload, ZooError};
use calorimeter_kernels::native::Machine;
use calorimeter_recipes::Treatment;
use std::sync::Arc;

impl NativeModel for LnLinear {
    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &Treatment,
        machine: Arc<Machine>,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        linear::open(problem, tensors, treatment, Some(self.0), machine, sets)
    }
}
