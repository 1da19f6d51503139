//! This machine's processor, through burn-flex.

use crate::burn_workload::{self, Traits};
use crate::{Problem, Tensors, Workload, ZooError};
use burn_flex::Flex;
use calorimeter_recipes::Treatment;

pub(super) fn open(problem: &Problem, tensors: &Tensors, treatment: &Treatment) -> Result<Box<dyn Workload>, ZooError> {
    burn_workload::build::<Flex>(problem, tensors, treatment, Default::default(), Traits { drain: |_| (), tf32: false })
}
