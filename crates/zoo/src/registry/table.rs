//! Table of registered names and factories.

use super::WorkloadFactory;
use crate::{Definition, DeviceKind, Implementation, Operation, Subject};
use calorimeter_case::{Name, NameTaken, Registry};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// Registered operators and models with their implementations.
pub(crate) struct Zoo {
    pub operators: Registry<dyn Operation>,
    pub models: Registry<dyn Definition>,
    /// Factories by subject, implementation and kind of device. Presence is support.
    factories: RwLock<BTreeMap<(Subject, Implementation, DeviceKind), &'static dyn WorkloadFactory>>,
}

impl Zoo {
    /// Creates an empty table.
    pub(crate) fn new() -> Self {
        Self {
            operators: Registry::new("operator"),
            models: Registry::new("model"),
            factories: RwLock::new(BTreeMap::new()),
        }
    }

    /// Adds the factory of an implementation.
    pub(crate) fn insert(
        &self,
        subject: Subject,
        implementation: Implementation,
        kind: DeviceKind,
        opener: Box<dyn WorkloadFactory>,
    ) -> Result<(), NameTaken> {
        let mut openers = self.factories.write().unwrap_or_else(PoisonError::into_inner);
        let key = (subject, implementation, kind);
        if openers.contains_key(&key) {
            let name = Name::from(format!("{implementation} of {subject} on {kind}"));
            return Err(NameTaken::new("implementation", name));
        }
        // Leaked, because names live as long as the process.
        openers.insert(key, Box::leak(opener));
        Ok(())
    }

    /// Returns the factory of an implementation.
    pub(crate) fn get(
        &self,
        subject: Subject,
        implementation: Implementation,
        kind: DeviceKind,
    ) -> Option<&'static dyn WorkloadFactory> {
        let openers = self.factories.read().unwrap_or_else(PoisonError::into_inner);
        openers.get(&(subject, implementation, kind)).copied()
    }

    /// True if there is a factory.
    pub(crate) fn has(&self, subject: Subject, implementation: Implementation, kind: DeviceKind) -> bool {
        self.get(subject, implementation, kind).is_some()
    }
}
