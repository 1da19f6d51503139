//! This machine's processor, through burn-flex.

use crate::burn_workload::{self, Traits};
use crate::{Implementation, Matrix, OperatorProblem, Problem, Setup, Tensors, Workload, ZooError};
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
    setup: Setup,
) -> Result<Box<dyn Workload>, ZooError> {
    let traits = Traits { drain: |_| (), tf32: false, sets: setup.sets };
    let OperatorProblem { operator, spec, .. } = problem;
    let make = |inputs| {
        Ok(match setup.implementation {
            Implementation::Fused => operator.fused_pass::<Flex>(spec, inputs),
            _ => operator.pass::<Flex>(spec, inputs),
        })
    };
    burn_workload::build_operator::<Flex>(problem, inputs, Default::default(), traits, make)
}
