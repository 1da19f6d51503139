//! `linear` by CPU kernels.

use super::LinearModel;
use crate::host::linear;
use crate::{HostModel, Problem, Tensors, Workload, ZooError};
use calorimeter_recipes::Treatment;

impl HostModel for LinearModel {
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
        linear::open(problem, tensors, treatment, None, sets)
    }
}
