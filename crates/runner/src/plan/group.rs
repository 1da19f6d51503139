//! Cases that are measured together.

use super::arm::{Arm, Place};
use super::planned::Planned;
use calorimeter_case::{Implementation, Regime};
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
    /// Every variant in every implementation.
    pub(super) fn new(place: &Place, planned: &mut Planned) -> Self {
        Self { entry: place.entry as usize, regime: place.regime, arms: place.arms(planned) }
    }

    /// Keeps the arms whose id the filter matches, and those they are compared with.
    pub(super) fn keep(&mut self, filter: &Regex) {
        let wanted: Vec<bool> = self.arms.iter().map(|arm| filter.is_match(arm.id())).collect();
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
            // They stand before all others, of which there may be many.
            let mut baselines = self.arms.iter().take_while(|arm| arm.is_baseline());
            let found = baselines.position(|arm| arm.implementation() == implementation)?;
            (found != arm && self.arms[found].supported().is_ok()).then_some(found)
        };
        let this = &self.arms[arm];
        find(this.implementation()).filter(|_| !this.is_baseline()).or_else(|| find(Implementation::Eager))
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
