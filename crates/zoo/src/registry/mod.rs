//! What is registered: operators, models, and what runs each in an implementation on a kind of device. Ours comes first,
//! and is registered the way another crate registers its own.

mod models;
mod openers;
mod operators;
mod reasons;
pub(crate) mod table;

pub use models::ModelWays;
pub(crate) use openers::foreign;
pub use openers::{Opener, Opening};
pub use operators::OperatorWays;

use crate::{Definition, Device, DeviceKind, Implementation, Operation, Setup, Subject, Task, Workload, ZooError};
use calorimeter_case::NameTaken;
use calorimeter_recipes::Treatment;
use std::sync::LazyLock;
use table::Zoo;

/// That of this process.
pub(crate) fn zoo() -> &'static Zoo {
    static ZOO: LazyLock<Zoo> = LazyLock::new(|| {
        let zoo = Zoo::new();
        crate::models::register(&zoo);
        crate::operators::register(&zoo);
        zoo
    });
    &ZOO
}

/// Registers an operator; what is answered takes the ways to run it: `register_operator(Negation)?.burn()`.
pub fn register_operator<O: Operation>(operator: O) -> Result<OperatorWays<'static, O>, NameTaken> {
    zoo().operator([operator])
}

/// Registers a model, which every recipe then applies to; what is answered takes the ways to run it.
pub fn register_model<D: Definition>(model: D) -> Result<ModelWays<'static, D>, NameTaken> {
    zoo().model([model])
}

/// Registers what runs a subject, whosever it is, in an implementation on a kind of device.
pub fn register_implementation(
    subject: Subject,
    implementation: Implementation,
    kind: DeviceKind,
    opener: impl Opener,
) -> Result<(), NameTaken> {
    zoo().insert(subject, implementation, kind, Box::new(opener))
}

/// What opens a subject; the error says what there is instead.
pub(crate) fn opener(
    subject: Subject,
    implementation: Implementation,
    device: Device,
) -> Result<&'static dyn Opener, ZooError> {
    let found = zoo().get(subject, implementation, device.kind());
    // The scripted device runs anything, and computes nothing.
    let found = found.or((device == Device::Mock).then_some(&openers::Scripted as &dyn Opener));
    found.ok_or_else(|| ZooError::Unsupported(reasons::absent(zoo(), subject, implementation, device)))
}

/// Whether a task can be opened under a treatment; known without touching a device.
pub(crate) fn supported(
    task: &Task,
    treatment: &Treatment,
    implementation: Implementation,
    device: Device,
) -> Result<(), ZooError> {
    let opener = opener(task.subject(), implementation, device)?;
    opener.accepts(task, treatment).map_err(ZooError::Unsupported)
}

/// Makes a task runnable: its inputs on the device, ready to launch.
pub(crate) fn open(opening: Opening<'_>) -> Result<Box<dyn Workload>, ZooError> {
    let Setup { implementation, device, .. } = opening.setup;
    let opener = opener(opening.task.subject(), implementation, device)?;
    opener.accepts(opening.task, opening.treatment).map_err(ZooError::Unsupported)?;
    opener.open(opening)
}
