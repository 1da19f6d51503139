//! Allocation of case ids, and interning of reasons that many cases share.

use calorimeter_case::{CaseId, CaseIdentity};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Allocator of unique case ids; also interns reasons.
#[derive(Default)]
pub(super) struct IdAllocator {
    /// Number of cases per id, without the repeat number.
    ids: HashMap<CaseId, u32>,
    reasons: HashSet<Arc<str>>,
}

impl IdAllocator {
    /// Returns the id of the next case with an identity; repeated identities are numbered.
    pub(super) fn next_id(&mut self, identity: CaseIdentity<'_>) -> CaseId {
        let id = CaseId::from(identity);
        match self.ids.get_mut(&id) {
            Some(before) => {
                let repeat = *before;
                *before += 1;
                CaseIdentity { repeat, ..identity }.into()
            }
            None => {
                self.ids.insert(id.clone(), 1);
                id
            }
        }
    }

    /// Returns a shared copy of a reason.
    pub(super) fn intern_reason(&mut self, reason: String) -> Arc<str> {
        if let Some(known) = self.reasons.get(reason.as_str()) {
            return known.clone();
        }
        let reason: Arc<str> = reason.into();
        self.reasons.insert(reason.clone());
        reason
    }
}
