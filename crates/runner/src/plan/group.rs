//! Group of cases that are compared with each other.

use super::ids::IdAllocator;
use super::planned_case::{PlanIndex, PlannedCase};
use calorimeter_case::Regime;
use regex::Regex;

/// Cases of one workload, shape and regime. They are measured interleaved in one process, as a speed-up requires.
#[derive(Debug, Clone)]
pub struct Group {
    /// Index of its entry.
    pub(super) entry: usize,
    /// Index of its size in the entry.
    pub(super) task: usize,
    regime: Regime,
    cases: Vec<PlannedCase>,
}

impl Group {
    /// Creates a group with every variant in every implementation.
    pub(super) fn new(place: &PlanIndex, ids: &mut IdAllocator) -> Self {
        Self {
            entry: place.entry as usize,
            task: place.task as usize,
            regime: place.regime,
            cases: place.planned_cases(ids),
        }
    }

    /// Keeps the cases whose id matches the filter, and their baselines.
    pub(super) fn retain_matching(&mut self, filter: &Regex) {
        let wanted: Vec<bool> = self.cases.iter().map(|case| filter.is_match(case.id())).collect();
        let mut needed = vec![false; self.cases.len()];
        for against in (0..self.cases.len()).filter(|&case| wanted[case]).filter_map(|case| self.baseline_of(case)) {
            needed[against] = true;
        }
        let mut kept = wanted.into_iter().zip(needed);
        self.cases.retain_mut(|case| {
            let (wanted, needed) = kept.next().unwrap_or_default();
            if needed && !wanted {
                case.mark_implied();
            }
            wanted || needed
        });
    }

    /// Cases in order.
    pub fn cases(&self) -> &[PlannedCase] {
        &self.cases
    }

    /// Index of the baseline of a case: the unquantized case in the same implementation, otherwise in the implementation
    /// that serves the group. For foreign programs it is the first program.
    pub fn baseline_of(&self, case: usize) -> Option<usize> {
        let find = |implementation| {
            // Baselines precede all other cases, of which there may be many.
            let mut baselines = self.cases.iter().take_while(|case| case.is_baseline());
            let found = baselines.position(|case| case.implementation() == implementation)?;
            (found != case && self.cases[found].supported().is_ok()).then_some(found)
        };
        let this = &self.cases[case];
        find(this.implementation()).filter(|_| !this.is_baseline()).or_else(|| find(this.baseline_implementation()))
    }

    /// Number of cases.
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    /// True if the group has no cases.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Timing mode.
    pub fn regime(&self) -> Regime {
        self.regime
    }
}
