//! Registry of operators, models, and their implementations per kind of device.
//!
//! Built-in ones are registered first, through the functions that other crates use.

mod factories;
mod models;
mod names;
mod operators;
mod reasons;
mod support;
pub(crate) mod table;

pub use factories::{OpenRequest, WorkloadFactory};
pub use models::ModelBuilder;
pub use operators::OperatorBuilder;
pub(crate) use support::open;
pub use support::support;

use crate::{Definition, DeviceKind, Implementation, Operation, Subject};
use calorimeter_case::NameTaken;
use std::sync::LazyLock;
use table::Zoo;

/// Returns the process-wide registry, with built-in models and operators.
pub(crate) fn zoo() -> &'static Zoo {
    static ZOO: LazyLock<Zoo> = LazyLock::new(|| {
        let zoo = Zoo::new();
        crate::models::register(&zoo);
        crate::operators::register(&zoo);
        zoo
    });
    &ZOO
}

/// Registers an operator and returns a builder for its implementations: `register_operator(Negation)?.burn()`.
pub fn register_operator<O: Operation>(operator: O) -> Result<OperatorBuilder<'static, O>, NameTaken> {
    zoo().operator([operator])
}

/// Registers a model, to which every recipe applies, and returns a builder for its implementations.
pub fn register_model<D: Definition>(model: D) -> Result<ModelBuilder<'static, D>, NameTaken> {
    zoo().model([model])
}

/// Registers an implementation of any subject on a kind of device.
pub fn register_implementation(
    subject: Subject,
    implementation: Implementation,
    kind: DeviceKind,
    opener: impl WorkloadFactory,
) -> Result<(), NameTaken> {
    zoo().insert(subject, implementation, kind, Box::new(opener))
}
