//! Which combinations exist, known without touching a device.

use crate::{Device, Implementation, Problem, Task, ZooError, registry};
use calorimeter_recipes::{Treatment, Variant};

/// What a recipe does to a problem's layers, if the combination can be run; the error says why not and what would.
pub fn support(
    problem: &Problem,
    variant: Variant,
    implementation: Implementation,
    device: Device,
) -> Result<Treatment, ZooError> {
    problem.model.check(problem.shape)?;
    let treatment = variant.treatment(problem.dtype)?;
    for (n, k) in problem.layout().linears {
        treatment.check(n as usize, k as usize)?;
    }
    registry::supported(&Task::Model(*problem), &treatment, implementation, device).map(|()| treatment)
}
