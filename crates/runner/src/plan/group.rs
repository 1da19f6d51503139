//! Cases that are measured together.

use super::arm::{Arm, Shared};
use crate::entries::{NamedTask, ResolvedEntry};
use calorimeter_case::{Implementation, Regime};
use calorimeter_recipes::Variant;
use regex::Regex;

/// The arms of one workload at one shape in one regime: measured together, because a speed-up is worth something only
/// when its two sides alternate in one process.
#[derive(Debug, Clone)]
pub struct Group {
    /// The position of its entry.
    pub(super) entry: usize,
    regime: Regime,
    arms: Vec<Arm>,
}

impl Group {
    /// Every variant in every implementation; `planned` are the arms of equal groups before, and of this one afterwards.
    pub(super) fn new(
        index: usize,
        entry: &ResolvedEntry,
        named: &NamedTask,
        regime: Regime,
        planned: &mut Vec<(Variant, Implementation)>,
    ) -> Self {
        let shared = Shared::new(entry, named, regime);
        let mut arms = Vec::with_capacity(entry.variants.len() * entry.implementations.len());
        for &variant in &entry.variants {
            let treated = shared.treated(variant);
            for &implementation in &entry.implementations {
                // An entry has no arm twice.
                let repeat = planned.iter().filter(|arm| **arm == (variant, implementation)).count() as u32;
                arms.push(shared.arm(&treated, variant, implementation, repeat));
            }
        }
        let new = |&variant| entry.implementations.iter().map(move |&implementation| (variant, implementation));
        planned.extend(entry.variants.iter().flat_map(new));
        Self { entry: index, regime, arms }
    }

    /// Keeps the arms whose id the filter matches, and those they are compared with.
    pub(super) fn keep(&mut self, filter: &Regex) {
        let wanted: Vec<bool> = self.arms.iter().map(|arm| filter.is_match(&arm.case().id)).collect();
        let mut needed = vec![false; self.arms.len()];
        for against in (0..self.arms.len()).filter(|&arm| wanted[arm]).filter_map(|arm| self.against(arm)) {
            needed[against] = true;
        }
        let mut kept = wanted.into_iter().zip(needed);
        self.arms.retain_mut(|arm| {
            let (wanted, needed) = kept.next().unwrap_or_default();
            if needed && !wanted {
                arm.imply();
            }
            wanted || needed
        });
    }

    /// The ways to compute it, in order.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// The arm that an arm is compared with: the baseline in the same implementation if that exists, else in `eager`.
    pub fn against(&self, arm: usize) -> Option<usize> {
        let find = |implementation| {
            let is = |arm: &Arm| arm.case().is_baseline() && arm.case().implementation == implementation;
            let found = self.arms.iter().position(is)?;
            (found != arm && self.arms[found].supported().is_ok()).then_some(found)
        };
        let case = self.arms[arm].case();
        find(case.implementation).filter(|_| !case.is_baseline()).or_else(|| find(Implementation::Eager))
    }

    /// The number of cases.
    pub fn len(&self) -> usize {
        self.arms.len()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.arms.is_empty()
    }

    /// What its times mean.
    pub fn regime(&self) -> Regime {
        self.regime
    }
}
