//! This machine's processor, through burn-flex.

use crate::{Problem, Tensors, Workload, ZooError, burn_workload};
use burn_flex::Flex;
use calorimeter_recipes::Recipe;

pub(super) fn open(problem: &Problem, tensors: &Tensors, recipe: Recipe) -> Result<Box<dyn Workload>, ZooError> {
    burn_workload::build::<Flex>(problem, tensors, recipe, Default::default(), |_| ())
}
