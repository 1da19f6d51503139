//! Estimate of the remaining time: predictions of pending cases, corrected by the times of finished ones.

use crate::plan::Predicted;
use crate::worker::Stage;
use calorimeter_case::{CaseId, Implementation};
use std::collections::HashMap;

/// Weight of the prediction, in seconds of measured time.
const TRUST: f64 = 3.0;

/// Remaining time of a run, by kind of stage, because their prediction errors differ.
#[derive(Debug, Default)]
pub struct Left {
    /// Cases that are not finished.
    waiting: HashMap<CaseId, Waiting>,
    preparing: Pace,
    measuring: Pace,
    tuning: HashMap<Implementation, Tuning>,
}

/// Predicted seconds of a case that is not finished, and the seconds spent on it.
#[derive(Debug)]
struct Waiting {
    implementation: Implementation,
    preparing: f32,
    measuring: f32,
    spent: Option<Box<Spent>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Spent {
    preparing: f64,
    measuring: f64,
    tuning: f64,
}

/// Predicted and actual seconds of one kind of stage.
#[derive(Debug, Default)]
struct Pace {
    /// Totals of finished cases.
    predicted: f64,
    taken: f64,
    /// Totals of pending cases.
    waiting: f64,
    spent: f64,
}

impl Pace {
    fn left(&self) -> f64 {
        let factor = (self.taken + TRUST) / (self.predicted + TRUST);
        (self.waiting * factor - self.spent).max(0.0)
    }

    fn end(&mut self, predicted: f64, spent: f64, tells: bool) {
        self.waiting -= predicted;
        self.spent -= spent;
        if tells {
            self.predicted += predicted;
            self.taken += spent;
        }
    }
}

/// First launches of an implementation. They are unpredictable: negligible if its kernels were tuned before, otherwise
/// most of the run.
#[derive(Debug, Default, Clone, Copy)]
struct Tuning {
    /// Cases that started tuning, and their seconds.
    reached: u64,
    taken: f64,
    /// Cases that did not.
    waiting: u64,
}

impl Tuning {
    fn mean(&self) -> Option<f64> {
        (self.reached > 0).then(|| self.taken / self.reached as f64)
    }
}

impl Left {
    /// Creates an estimate for cases with their implementations and predictions.
    pub fn of(cases: impl Iterator<Item = (CaseId, Implementation, Predicted)>) -> Self {
        let mut estimate = Self::default();
        for (id, implementation, predicted) in cases {
            let (preparing, measuring) = (predicted.prepared as f32, predicted.measured() as f32);
            estimate.preparing.waiting += f64::from(preparing);
            estimate.measuring.waiting += f64::from(measuring);
            estimate.tuning.entry(implementation).or_default().waiting += 1;
            estimate.waiting.insert(id, Waiting { implementation, preparing, measuring, spent: None });
        }
        estimate
    }

    /// Charges seconds to a case.
    pub fn spend(&mut self, case: &CaseId, stage: Stage, seconds: f64) {
        let Some(waiting) = self.waiting.get_mut(case) else { return };
        let spent = waiting.spent.get_or_insert_default();
        match stage {
            Stage::Open | Stage::Judge => {
                spent.preparing += seconds;
                self.preparing.spent += seconds;
            }
            Stage::WarmUp | Stage::Measure | Stage::Profile => {
                spent.measuring += seconds;
                self.measuring.spent += seconds;
            }
            Stage::Tune => {
                let tuning = self.tuning.entry(waiting.implementation).or_default();
                if spent.tuning == 0.0 {
                    tuning.reached += 1;
                    tuning.waiting = tuning.waiting.saturating_sub(1);
                }
                spent.tuning += seconds;
                tuning.taken += seconds;
            }
            // Peaks are measured once per device, independent of cases.
            Stage::Peaks => {}
        }
    }

    /// Removes a finished case. If `tells` is false, because it failed or finished earlier, it does not correct the
    /// estimate.
    pub fn end(&mut self, case: &CaseId, tells: bool) {
        let Some(Waiting { implementation, preparing, measuring, spent }) = self.waiting.remove(case) else { return };
        let spent = spent.map(|spent| *spent).unwrap_or_default();
        self.preparing.end(preparing.into(), spent.preparing, tells);
        self.measuring.end(measuring.into(), spent.measuring, tells);
        let tuning = self.tuning.entry(implementation).or_default();
        if spent.tuning == 0.0 {
            tuning.waiting = tuning.waiting.saturating_sub(1);
            // It was tuned between two polls.
            tuning.reached += u64::from(tells);
        }
    }

    /// Remaining seconds; `None` below one second.
    pub fn seconds(&self) -> Option<f64> {
        let all = self.tuning.values().fold(Tuning::default(), |all, one| Tuning {
            reached: all.reached + one.reached,
            taken: all.taken + one.taken,
            waiting: all.waiting + one.waiting,
        });
        // An implementation that was not reached yet is assumed to be average.
        let usual = all.mean().unwrap_or(0.0);
        let tuning: f64 = self.tuning.values().map(|one| one.waiting as f64 * one.mean().unwrap_or(usual)).sum();
        Some(self.preparing.left() + self.measuring.left() + tuning).filter(|seconds| *seconds >= 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(at: usize) -> CaseId {
        CaseId::from(at.to_string())
    }

    /// Cases with one second of preparation and two of measurement; odd ones are `fused`.
    fn run(cases: usize) -> Left {
        let predicted = Predicted { prepared: 1.0, measured_least: 1.0, measured_most: 4.0 };
        let implementation = |at| if at % 2 == 0 { Implementation::Eager } else { Implementation::Fused };
        Left::of((0..cases).map(|at| (id(at), implementation(at), predicted)))
    }

    fn case(left: &mut Left, at: usize, [preparing, tuning, measuring]: [f64; 3]) {
        for (stage, seconds) in [(Stage::Open, preparing), (Stage::Tune, tuning), (Stage::Measure, measuring)] {
            left.spend(&id(at), stage, seconds);
        }
        left.end(&id(at), true);
    }

    fn seconds(left: &Left) -> f64 {
        left.seconds().unwrap_or(0.0)
    }

    #[test]
    fn a_run_begins_with_what_was_predicted_and_ends_without_a_word() {
        let mut left = run(10);
        assert_eq!(seconds(&left), 30.0);
        for at in 0..10 {
            assert_eq!(seconds(&left).round(), 30.0 - 3.0 * at as f64);
            case(&mut left, at, [1.0, 0.0, 2.0]);
        }
        assert_eq!(left.seconds(), None);
    }

    #[test]
    fn what_is_spent_on_a_case_is_not_left() {
        let mut left = run(2);
        left.spend(&id(0), Stage::Measure, 1.5);
        assert_eq!(seconds(&left), 4.5);
        left.spend(&id(0), Stage::Measure, 60.0);
        assert_eq!(seconds(&left), 2.0);
    }

    #[test]
    fn each_kind_of_stage_is_corrected_by_its_own_times() {
        let mut left = run(100);
        for at in 0..50 {
            case(&mut left, at, [0.1, 0.0, 4.0]);
        }
        let expected = 50.0 * (1.0 * 0.1 + 2.0 * 2.0);
        assert!((seconds(&left) / expected - 1.0).abs() < 0.1, "{left:?}");
    }

    #[test]
    fn an_implementation_that_is_tuned_differs_from_one_that_is_not() {
        let mut left = run(20);
        for at in 0..10 {
            case(&mut left, at, [1.0, if at % 2 == 0 { 0.0 } else { 30.0 }, 2.0]);
        }
        // Ten remain, half of them in the implementation that is tuned.
        assert_eq!(seconds(&left).round(), 10.0 * 3.0 + 5.0 * 30.0);
    }

    #[test]
    fn a_case_that_is_being_tuned_says_how_long_the_next_ones_may_take() {
        let mut left = run(4);
        left.spend(&id(1), Stage::Tune, 40.0);
        assert_eq!(seconds(&left), 12.0 + 3.0 * 40.0);
    }

    #[test]
    fn one_that_ended_earlier_or_failed_teaches_nothing() {
        let mut left = run(10);
        (0..4).for_each(|at| left.end(&id(at), false));
        assert_eq!(seconds(&left), 18.0);
        left.spend(&id(4), Stage::Open, 0.01);
        left.end(&id(4), false);
        assert_eq!(seconds(&left).round(), 15.0);
        left.end(&id(4), true);
        left.spend(&id(4), Stage::Open, 5.0);
        assert_eq!(seconds(&left).round(), 15.0);
    }
}
