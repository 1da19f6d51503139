//! This machine's processor, through burn-flex.

use crate::burn_workload::{self, Traits};
use crate::{Matrix, OperatorProblem, Problem, Tensors, Workload, ZooError};
use burn_flex::Flex;
use calorimeter_recipes::Treatment;

pub(super) fn open(
    problem: &Problem,
    tensors: &Tensors,
    treatment: &Treatment,
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let traits = Traits { drain: |_| (), tf32: false, sets };
    burn_workload::build::<Flex>(problem, tensors, treatment, Default::default(), traits)
}

pub(super) fn open_operator(
    problem: &OperatorProblem,
    inputs: &[Matrix],
    sets: u32,
) -> Result<Box<dyn Workload>, ZooError> {
    let traits = Traits { drain: |_| (), tf32: false, sets };
    let make = |inputs| Ok(problem.operator.pass::<Flex>(&problem.spec, inputs));
    burn_workload::build_operator::<Flex>(problem, inputs, Default::default(), traits, make)
}
