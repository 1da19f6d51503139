//! This machine's processor, through burn-flex.

use crate::burn_workload::{self, Traits};
use crate::{Problem, Tensors, Workload, ZooError};
use burn_flex::Flex;
use calorimeter_recipes::Recipe;

pub(super) fn open(problem: &Problem, tensors: &Tensors, recipe: Recipe) -> Result<Box<dyn Workload>, ZooError> {
    burn_workload::build::<Flex>(problem, tensors, recipe, Default::default(), Traits { drain: |_| (), tf32: false })
}
