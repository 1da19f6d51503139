//! Supported combinations, determined without a device, and creation of workloads.

use super::{OpenRequest, WorkloadFactory, factories, reasons, zoo};
use crate::{
    Device, DeviceKind, Implementation, Inputs, NativeDevices, Operator, OperatorProblem, Problem, Setup, Spec,
    Subject, Task, Workload, ZooError,
};
use calorimeter_recipes::{QuantConfig, RecipeVariant};

/// Finds the factory of a subject; the error names alternatives.
fn find_factory(
    subject: Subject,
    implementation: Implementation,
    device: Device,
) -> Result<&'static dyn WorkloadFactory, ZooError> {
    let found = zoo().get(subject, implementation, device.kind());
    // The mock device accepts every task.
    let found =
        found.or((device.kind() == DeviceKind::Mock).then_some(&factories::MockFactory as &dyn WorkloadFactory));
    found.ok_or_else(|| ZooError::Unsupported(reasons::missing_entry(zoo(), subject, implementation, device)))
}

/// Checks that a workload can be created, without a device.
fn check_support(
    task: &Task,
    treatment: &QuantConfig,
    implementation: Implementation,
    device: Device,
) -> Result<(), ZooError> {
    let opener = find_factory(task.subject(), implementation, device)?;
    check_factory(opener, task, treatment, implementation, device)
}

/// Checks that a factory accepts a task under a treatment.
fn check_factory(
    opener: &dyn WorkloadFactory,
    task: &Task,
    treatment: &QuantConfig,
    implementation: Implementation,
    device: Device,
) -> Result<(), ZooError> {
    let is_supported = opener.is_remote() || supports_shortcuts(implementation, device);
    if let Some(shortcut) = treatment.precision_hint.filter(|_| !is_supported) {
        return Err(ZooError::Unsupported(reasons::unsupported_shortcut(shortcut, implementation, device)));
    }
    opener.accepts(task, treatment).map_err(ZooError::Unsupported)
}

/// True if the implementation follows requests for reduced precision; others choose precision themselves.
fn supports_shortcuts(implementation: Implementation, device: Device) -> bool {
    match device.kind() {
        DeviceKind::Cuda => implementation == Implementation::Native,
        kind => kind == DeviceKind::Mock,
    }
}

/// Creates the workload of a task: inputs uploaded, ready to launch.
pub(crate) fn open(opening: OpenRequest<'_>) -> Result<Box<dyn Workload>, ZooError> {
    let Setup { implementation, device, .. } = opening.setup;
    let opener = find_factory(opening.task.subject(), implementation, device)?;
    check_factory(opener, opening.task, opening.treatment, implementation, device)?;
    opener.open(opening)
}

/// Returns the quantization of a model's layers if the combination is supported; the error names an alternative.
pub fn support(
    problem: &Problem,
    variant: RecipeVariant,
    implementation: Implementation,
    device: Device,
) -> Result<QuantConfig, ZooError> {
    problem.model.check(problem.shape)?;
    let treatment = variant.quant_config(problem.dtype)?;
    for (n, k) in problem.layout().linears {
        treatment.check(n as usize, k as usize)?;
    }
    check_support(&Task::Model(*problem), &treatment, implementation, device).map(|()| treatment)
}

impl Subject {
    /// True if an implementation is registered for the device, at any size.
    pub fn has(self, implementation: Implementation, device: Device) -> bool {
        find_factory(self, implementation, device).is_ok()
    }
}

impl Operator {
    /// Checks that an implementation supports a size and element type on a device; the error names an alternative.
    pub fn check_support(&self, spec: &Spec, implementation: Implementation, device: Device) -> Result<(), ZooError> {
        let task = Task::Operator(OperatorProblem { operator: *self, spec: spec.clone(), seed: 0 });
        check_support(&task, &QuantConfig::unquantized(spec.dtype()), implementation, device)
    }
}

impl Task {
    /// Returns the quantization under a variant if the combination is supported. Needs no device.
    pub fn support(
        &self,
        variant: RecipeVariant,
        implementation: Implementation,
        device: Device,
    ) -> Result<QuantConfig, ZooError> {
        match self {
            Self::Model(problem) => support(problem, variant, implementation, device),
            Self::Operator(OperatorProblem { operator, spec, .. }) => {
                let treatment = self.treatment(variant)?;
                operator.check(spec)?;
                check_support(&self.with_training(&treatment), &treatment, implementation, device).map(|()| treatment)
            }
            Self::Foreign(problem) => {
                problem.support(implementation, device)?;
                self.treatment(variant)
            }
        }
    }

    /// True if another process runs the passes of an implementation.
    pub fn is_remote(&self, implementation: Implementation, device: Device) -> bool {
        if let Self::Foreign(problem) = self {
            return problem.worker_words(implementation).is_some();
        }
        find_factory(self.subject(), implementation, device).is_ok_and(WorkloadFactory::is_remote)
    }

    /// Implementations that support the baseline on a device.
    pub fn implementations(&self, device: Device) -> Vec<Implementation> {
        if let Self::Foreign(problem) = self {
            return problem.foreign.implementations();
        }
        let has = |of: &Implementation| self.support(RecipeVariant::BASELINE, *of, device).is_ok();
        Implementation::all().into_iter().filter(has).collect()
    }

    /// Creates the workload.
    pub fn open(
        &self,
        inputs: &Inputs,
        treatment: &QuantConfig,
        recipe: Option<RecipeVariant>,
        setup: Setup,
        machines: &mut NativeDevices,
    ) -> Result<Box<dyn Workload>, ZooError> {
        match self {
            Self::Model(problem) => problem.model.check(problem.shape)?,
            Self::Operator(OperatorProblem { operator, spec, .. }) => operator.check(spec)?,
            Self::Foreign(problem) => return problem.open(setup, machines),
        }
        open(OpenRequest { task: &self.with_training(treatment), inputs, treatment, recipe, setup, machines })
    }
}
