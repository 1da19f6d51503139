//! What is registered: operators, models, and what runs each in an implementation on a kind of device. Ours comes first,
//! and is registered the way another crate registers its own.

mod models;
mod names;
mod openers;
mod operators;
mod reasons;
mod support;
pub(crate) mod table;

pub use models::ModelWays;
pub use openers::{Opener, Opening};
pub use operators::OperatorWays;
pub(crate) use support::open;
pub use support::support;

use crate::{Definition, DeviceKind, Implementation, Operation, Subject};
use calorimeter_case::NameTaken;
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
