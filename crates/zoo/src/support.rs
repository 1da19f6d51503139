//! Which combinations exist, known without touching a device.

use crate::{Device, Implementation, Model, Problem, ZooError};
use calorimeter_recipes::{Recipe, Sparsity};

/// Whether the combination can be run; the error says why not and what would.
pub fn support(
    problem: &Problem,
    recipe: Recipe,
    sparsity: Option<Sparsity>,
    implementation: Implementation,
    device: Device,
) -> Result<(), ZooError> {
    problem.model.check(problem.shape)?;
    if let Some(sparsity) = sparsity {
        return unsupported(format!("{sparsity} sparsity has no implementation in this version of calorimeter"));
    }
    for (n, k) in problem.layout().linears {
        recipe.check(n, k, problem.dtype)?;
    }
    match (implementation, device) {
        (_, Device::Mock) | (Implementation::Eager, _) => Ok(()),
        (Implementation::Fused, Device::Cpu) => {
            unsupported("the CPU backend fuses nothing; `eager` runs on it, `fused` needs cuda, vulkan or metal".into())
        }
        (Implementation::Fused, _) => Ok(()),
        (Implementation::Cube, _) => unsupported("no CubeCL kernels of our own in this version of calorimeter".into()),
        (Implementation::Native, Device::Cuda(_)) => match (recipe, problem.model) {
            (Recipe::BASELINE, Model::LinearModel(_) | Model::LnLinear(_)) => Ok(()),
            (Recipe::BASELINE, model) => {
                unsupported(format!("`native` runs linear and ln_linear_*, not {model}, in this version"))
            }
            (recipe, _) => unsupported(format!("`native` runs the baseline, not {recipe}, in this version")),
        },
        (Implementation::Native, device) => {
            unsupported(format!("`native` kernels are written for cuda; there are none for {device} in this version"))
        }
    }
}

fn unsupported(why: String) -> Result<(), ZooError> {
    Err(ZooError::Unsupported(why))
}
