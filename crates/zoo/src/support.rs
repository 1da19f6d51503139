//! Which combinations exist, known without touching a device.

use crate::{Device, Implementation, Model, Problem, ZooError};
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
    implemented(problem, &treatment, implementation, device).map(|()| treatment)
}

/// Whether an implementation knows a problem under a treatment.
pub(crate) fn implemented(
    problem: &Problem,
    treatment: &Treatment,
    implementation: Implementation,
    device: Device,
) -> Result<(), ZooError> {
    match (implementation, device) {
        (_, Device::Mock) | (Implementation::Eager, _) => Ok(()),
        (Implementation::Fused, Device::Cpu) => {
            unsupported("the CPU backend fuses nothing; `eager` runs on it, `fused` needs cuda, vulkan or metal".into())
        }
        (Implementation::Fused, _) => Ok(()),
        (Implementation::Cube, _) => unsupported("no CubeCL kernels of our own in this version of calorimeter".into()),
        (Implementation::Native, Device::Cuda(_)) if *treatment != Treatment::none(problem.dtype) => unsupported(
            "`native` runs the baseline in this version, not quantised or pruned weights; `eager` does".into(),
        ),
        (Implementation::Native, Device::Cuda(_)) => match problem.model {
            Model::LinearModel(_) | Model::LnLinear(_) => Ok(()),
            model => unsupported(format!("`native` runs linear and ln_linear_*, not {model}, in this version")),
        },
        (Implementation::Native, device) => {
            unsupported(format!("`native` kernels are written for cuda; there are none for {device} in this version"))
        }
    }
}

fn unsupported(why: String) -> Result<(), ZooError> {
    Err(ZooError::Unsupported(why))
}
