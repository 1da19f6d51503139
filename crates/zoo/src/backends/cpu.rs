//! This machine's processor, through burn-flex.

use crate::burn_workload::{self, Traits};
use crate::{Problem, Tensors, Workload, ZooError};
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
