//! What is planned so far: each id is given once, and what many cases say is kept once.

use calorimeter_case::{CaseId, Identity};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Ids and reasons.
#[derive(Default)]
pub struct IdsAndReasons {
    /// How many cases have an id, but for the number that tells them apart.
    ids: HashMap<CaseId, u32>,
    reasons: HashSet<Arc<str>>,
}

impl IdsAndReasons {
    /// The id of the next case of an identity, which says how many equal ones stand before it.
    pub fn id(&mut self, identity: Identity<'_>) -> CaseId {
        let id = CaseId::from(identity);
        match self.ids.get_mut(&id) {
            Some(before) => {
                let repeat = *before;
                *before += 1;
                Identity { repeat, ..identity }.into()
            }
            None => {
                self.ids.insert(id.clone(), 1);
                id
            }
        }
    }

    /// A reason as it was kept when it was first given.
    pub fn reason(&mut self, reason: String) -> Arc<str> {
        if let Some(known) = self.reasons.get(reason.as_str()) {
            return known.clone();
        }
        let reason: Arc<str> = reason.into();
        self.reasons.insert(reason.clone());
        reason
    }
}
