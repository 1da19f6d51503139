//! `linear` by CPU kernels.

use super::LinearModel;
use crate::host::linear;
use crate::{HostModel, Problem, Tensors, Workload, ZooError};
use calorimeter_recipes::QuantConfig;

impl HostModel for LinearModel {
    fn accepts(&self, problem: &Problem, treatment: &QuantConfig) -> Result<(), String> {
        linear::check_support(problem, treatment)
    }

    fn open(
        &self,
        problem: &Problem,
        tensors: &Tensors,
        treatment: &QuantConfig,
        sets: u32,
    ) -> Result<Box<dyn Workload>, ZooError> {
        linear::open(problem, tensors, treatment, None, sets)
    }
}
