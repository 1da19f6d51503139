//! The table itself: what is named, and what opens each.

use super::Opener;
use crate::{Definition, DeviceKind, Implementation, Operation, Subject};
use calorimeter_case::{Name, NameTaken, Registry};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// One table for everything that can be named and run.
pub struct Zoo {
    pub operators: Registry<dyn Operation>,
    pub models: Registry<dyn Definition>,
    /// Presence is support: what opens a subject in an implementation on a kind of device.
    openers: RwLock<BTreeMap<(Subject, Implementation, DeviceKind), &'static dyn Opener>>,
}

impl Zoo {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            operators: Registry::new("operator"),
            models: Registry::new("model"),
            openers: RwLock::new(BTreeMap::new()),
        }
    }

    /// Adds what opens a subject.
    pub fn insert(
        &self,
        subject: Subject,
        implementation: Implementation,
        kind: DeviceKind,
        opener: Box<dyn Opener>,
    ) -> Result<(), NameTaken> {
        let mut openers = self.openers.write().unwrap_or_else(PoisonError::into_inner);
        let key = (subject, implementation, kind);
        if openers.contains_key(&key) {
            let name = Name::from(format!("{implementation} of {subject} on {kind}"));
            return Err(NameTaken::new("implementation", name));
        }
        // Kept for the life of the process, as the names are.
        openers.insert(key, Box::leak(opener));
        Ok(())
    }

    /// What opens a subject.
    pub fn get(
        &self,
        subject: Subject,
        implementation: Implementation,
        kind: DeviceKind,
    ) -> Option<&'static dyn Opener> {
        let openers = self.openers.read().unwrap_or_else(PoisonError::into_inner);
        openers.get(&(subject, implementation, kind)).copied()
    }

    /// Whether anything does.
    pub fn has(&self, subject: Subject, implementation: Implementation, kind: DeviceKind) -> bool {
        self.get(subject, implementation, kind).is_some()
    }
}
