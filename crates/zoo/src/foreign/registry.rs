//! Interned foreign work: a handle that is copied and compared by address.

use super::ForeignWork;
use calorimeter_case::Implementation;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Mutex, PoisonError};

/// Handle of foreign work that lives as long as the process. Equal work is stored once.
#[derive(Debug, Clone, Copy)]
pub struct ForeignHandle(&'static ForeignWork);

impl From<ForeignWork> for ForeignHandle {
    fn from(work: ForeignWork) -> Self {
        static INTERNED: Mutex<Vec<&'static ForeignWork>> = Mutex::new(Vec::new());
        let mut kept = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.iter().find(|known| ***known == work) {
            return Self(known);
        }
        let work: &'static ForeignWork = Box::leak(Box::new(work));
        kept.push(work);
        Self(work)
    }
}

impl ForeignHandle {
    /// Implementations of all subjects, in order.
    pub fn implementations(self) -> Vec<Implementation> {
        self.subjects.iter().map(super::ForeignSubject::implementation).collect()
    }

    /// Implementation whose outputs are the reference.
    pub fn reference_implementation(self) -> Option<Implementation> {
        self.subjects.first().map(super::ForeignSubject::implementation)
    }

    /// JSON of the workload of flashinfer-bench, if any.
    pub fn flashinfer_workload(self) -> Option<&'static str> {
        self.0.flashinfer_workload.as_deref()
    }

    /// Returns the subject of an implementation.
    pub(super) fn subject(self, implementation: Implementation) -> Option<&'static super::ForeignSubject> {
        self.0.subjects.iter().find(|subject| implementation.name() == subject.label.as_str())
    }
}

impl Deref for ForeignHandle {
    type Target = ForeignWork;

    fn deref(&self) -> &ForeignWork {
        self.0
    }
}

impl fmt::Display for ForeignHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.name)
    }
}

// Equal work is stored once, so addresses decide.
impl PartialEq for ForeignHandle {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for ForeignHandle {}

impl Hash for ForeignHandle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0).hash(state);
    }
}

impl PartialOrd for ForeignHandle {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ForeignHandle {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = |foreign: &Self| std::ptr::from_ref(foreign.0);
        self.0.name.cmp(&other.0.name).then_with(|| place(self).cmp(&place(other)))
    }
}

impl Serialize for ForeignHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ForeignHandle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ForeignWork::deserialize(deserializer).map(Self::from)
    }
}
