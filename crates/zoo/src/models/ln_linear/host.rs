//! `ln_linear_<activation>` by CPU kernels.

use super::LnLinear;
use crate::host::linear;
use crate::{HostModel, Problem, Tensors, Workload, ZooError};
use calorimeter_recipes::Treatment;

impl HostModel for LnLinear {
    fn accepts(&self, problem: &Problem, treatment: &Treatment) -> Result<(), String> {
        linear::taken(problem, treatment)
    }

    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &Treatment,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        linear::open(problem, tensors, treatment, Some(self.0), sets)
    }
}
