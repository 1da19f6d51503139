//! Cases that are measured together.

use super::ids::IdsAndReasons;
use super::planned_case::{Place, PlannedCase};
use calorimeter_case::Regime;
use regex::Regex;

/// The cases of one workload at one shape in one regime: measured together, because a speed-up is worth something only
/// when its two sides alternate in one process.
#[derive(Debug, Clone)]
pub struct Group {
    /// The position of its entry.
    pub(super) entry: usize,
    /// The position of its size in that entry.
    pub(super) task: usize,
    regime: Regime,
    cases: Vec<PlannedCase>,
}

impl Group {
    /// Every variant in every implementation.
    pub(super) fn new(place: &Place, ids: &mut IdsAndReasons) -> Self {
        Self { entry: place.entry as usize, task: place.task as usize, regime: place.regime, cases: place.cases(ids) }
    }

    /// Keeps the cases whose id the filter matches, and those they are compared with.
    pub(super) fn keep(&mut self, filter: &Regex) {
        let wanted: Vec<bool> = self.cases.iter().map(|case| filter.is_match(case.id())).collect();
        let mut needed = vec![false; self.cases.len()];
        for against in (0..self.cases.len()).filter(|&case| wanted[case]).filter_map(|case| self.against(case)) {
            needed[against] = true;
        }
        let mut kept = wanted.into_iter().zip(needed);
        self.cases.retain_mut(|case| {
            let (wanted, needed) = kept.next().unwrap_or_default();
            if needed && !wanted {
                case.imply();
            }
            wanted || needed
        });
    }

    /// The ways to compute it, in order.
    pub fn cases(&self) -> &[PlannedCase] {
        &self.cases
    }

    /// The case that a case is compared with: the baseline in the same implementation if that exists, else in `eager`; of
    /// work of others, what its first program does.
    pub fn against(&self, case: usize) -> Option<usize> {
        let find = |implementation| {
            // They stand before all others, of which there may be many.
            let mut baselines = self.cases.iter().take_while(|case| case.is_baseline());
            let found = baselines.position(|case| case.implementation() == implementation)?;
            (found != case && self.cases[found].supported().is_ok()).then_some(found)
        };
        let this = &self.cases[case];
        find(this.implementation()).filter(|_| !this.is_baseline()).or_else(|| find(this.yardstick()))
    }

    /// The number of cases.
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// What its times mean.
    pub fn regime(&self) -> Regime {
        self.regime
    }
}
