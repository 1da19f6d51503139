//! Opens models and operators without a [`Task`].

use super::NativeDevices;
use crate::{
    Inputs, Matrix, OpenRequest, OperatorProblem, Problem, Setup, Task, Tensors, Workload, ZooError, registry,
};
use calorimeter_recipes::QuantConfig;

/// Creates the workload of an operator: uploads its inputs, ready to launch.
pub fn open_operator(
    problem: &OperatorProblem,
    inputs: &[Matrix],
    setup: Setup,
    machines: &mut NativeDevices,
) -> Result<Box<dyn Workload>, ZooError> {
    let OperatorProblem { operator, spec, .. } = problem;
    operator.check(spec)?;
    let (task, inputs) = (Task::Operator(problem.clone()), Inputs::Operator(inputs.to_vec()));
    let treatment = QuantConfig::unquantized(spec.dtype());
    registry::open(OpenRequest { task: &task, inputs: &inputs, treatment: &treatment, recipe: None, setup, machines })
}

/// Creates the workload of a model: quantizes and uploads its tensors, ready to launch.
pub fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &QuantConfig,
    setup: Setup,
    machines: &mut NativeDevices,
) -> Result<Box<dyn Workload>, ZooError> {
    problem.model.check(problem.shape)?;
    let (task, inputs) = (Task::Model(*problem), Inputs::Model(tensors.clone()));
    registry::open(OpenRequest { task: &task, inputs: &inputs, treatment, recipe: None, setup, machines })
}
