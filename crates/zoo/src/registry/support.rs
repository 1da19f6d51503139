//! Supported combinations, determined without a device, and creation of workloads.

use super::{Opener, Opening, openers, reasons, zoo};
use crate::{
    Device, DeviceKind, Implementation, Inputs, Machines, Operator, OperatorProblem, Problem, Setup, Spec, Subject,
    Task, Workload, ZooError,
};
use calorimeter_recipes::{Treatment, Variant};

/// Finds the factory of a subject; the error names alternatives.
fn opener(subject: Subject, implementation: Implementation, device: Device) -> Result<&'static dyn Opener, ZooError> {
    let found = zoo().get(subject, implementation, device.kind());
    // The mock device accepts every task.
    let found = found.or((device.kind() == DeviceKind::Mock).then_some(&openers::Scripted as &dyn Opener));
    found.ok_or_else(|| ZooError::Unsupported(reasons::absent(zoo(), subject, implementation, device)))
}

/// Checks that a workload can be created, without a device.
fn supported(
    task: &Task,
    treatment: &Treatment,
    implementation: Implementation,
    device: Device,
) -> Result<(), ZooError> {
    let opener = opener(task.subject(), implementation, device)?;
    takes(opener, task, treatment, implementation, device)
}

/// Checks that a factory accepts a task under a treatment.
fn takes(
    opener: &dyn Opener,
    task: &Task,
    treatment: &Treatment,
    implementation: Implementation,
    device: Device,
) -> Result<(), ZooError> {
    if let Some(shortcut) = treatment.shortcut.filter(|_| !takes_shortcuts(implementation, device)) {
        return Err(ZooError::Unsupported(reasons::no_shortcut(shortcut, implementation, device)));
    }
    opener.accepts(task, treatment).map_err(ZooError::Unsupported)
}

/// True if the implementation follows requests for reduced precision; others choose precision themselves.
fn takes_shortcuts(implementation: Implementation, device: Device) -> bool {
    match device.kind() {
        DeviceKind::Cuda => implementation == Implementation::Native,
        kind => kind == DeviceKind::Mock,
    }
}

/// Creates the workload of a task: inputs uploaded, ready to launch.
pub(crate) fn open(opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
    let Setup { implementation, device, .. } = opening.setup;
    let opener = opener(opening.task.subject(), implementation, device)?;
    takes(opener, opening.task, opening.treatment, implementation, device)?;
    opener.open(opening)
}

/// Returns the quantization of a model's layers if the combination is supported; the error names an alternative.
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
    supported(&Task::Model(*problem), &treatment, implementation, device).map(|()| treatment)
}

impl Subject {
    /// True if an implementation is registered for the device, at any size.
    pub fn has(self, implementation: Implementation, device: Device) -> bool {
        opener(self, implementation, device).is_ok()
    }
}

impl Operator {
    /// Checks that an implementation supports a size and element type on a device; the error names an alternative.
    pub fn supported(&self, spec: &Spec, implementation: Implementation, device: Device) -> Result<(), ZooError> {
        let task = Task::Operator(OperatorProblem { operator: *self, spec: spec.clone(), seed: 0 });
        supported(&task, &Treatment::none(spec.dtype()), implementation, device)
    }
}

impl Task {
    /// Returns the quantization under a variant if the combination is supported. Needs no device.
    pub fn support(
        &self,
        variant: Variant,
        implementation: Implementation,
        device: Device,
    ) -> Result<Treatment, ZooError> {
        match self {
            Self::Model(problem) => support(problem, variant, implementation, device),
            Self::Operator(OperatorProblem { operator, spec, .. }) => {
                let treatment = self.treatment(variant)?;
                operator.check(spec)?;
                supported(&self.under(&treatment), &treatment, implementation, device).map(|()| treatment)
            }
            Self::Foreign(problem) => {
                problem.support(implementation, device)?;
                self.treatment(variant)
            }
        }
    }

    /// Implementations that support the baseline on a device.
    pub fn implementations(&self, device: Device) -> Vec<Implementation> {
        if let Self::Foreign(problem) = self {
            return problem.foreign.implementations();
        }
        let has = |of: &Implementation| self.support(Variant::BASELINE, *of, device).is_ok();
        Implementation::known().into_iter().filter(has).collect()
    }

    /// Creates the workload.
    pub fn open(
        &self,
        inputs: &Inputs,
        treatment: &Treatment,
        setup: Setup,
        machines: &mut Machines,
    ) -> Result<Box<dyn Workload>, ZooError> {
        match self {
            Self::Model(problem) => problem.model.check(problem.shape)?,
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.check(spec)?,
            Self::Foreign(problem) => return problem.open(setup, machines),
        }
        open(Opening { task: &self.under(treatment), inputs, treatment, setup, machines })
    }
}
