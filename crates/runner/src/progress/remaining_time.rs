//! Estimate of the remaining time: predictions of pending cases, corrected by the times of finished ones.

use crate::plan::Prediction;
use crate::worker::Stage;
use calorimeter_case::{CaseId, Implementation};
use std::collections::HashMap;

/// Weight of the prediction, in seconds of measured time.
const PRIOR_SECONDS: f64 = 3.0;

/// Remaining time of a run, by kind of stage, because their prediction errors differ.
#[derive(Debug, Default)]
pub(super) struct RemainingTime {
    /// Cases that are not finished.
    pending: HashMap<CaseId, PendingCase>,
    preparing: StageEstimate,
    measuring: StageEstimate,
    tuning: HashMap<Implementation, TuningEstimate>,
}

/// Predicted seconds of a case that is not finished, and the seconds spent on it.
#[derive(Debug)]
struct PendingCase {
    implementation: Implementation,
    preparing: f32,
    measuring: f32,
    spent: Option<Box<SpentSeconds>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct SpentSeconds {
    preparing: f64,
    measuring: f64,
    tuning: f64,
}

/// Predicted and actual seconds of one kind of stage.
#[derive(Debug, Default)]
struct StageEstimate {
    /// Totals of finished cases.
    predicted: f64,
    actual: f64,
    /// Totals of pending cases.
    pending: f64,
    spent: f64,
}

impl StageEstimate {
    fn remaining(&self) -> f64 {
        let factor = (self.actual + PRIOR_SECONDS) / (self.predicted + PRIOR_SECONDS);
        (self.pending * factor - self.spent).max(0.0)
    }

    fn finish(&mut self, predicted: f64, spent: f64, tells: bool) {
        self.pending -= predicted;
        self.spent -= spent;
        if tells {
            self.predicted += predicted;
            self.actual += spent;
        }
    }
}

/// First launches of an implementation. They are unpredictable: negligible if its kernels were tuned before, otherwise
/// most of the run.
#[derive(Debug, Default, Clone, Copy)]
struct TuningEstimate {
    /// Cases that started tuning, and their seconds.
    started: u64,
    seconds: f64,
    /// Cases that did not.
    pending: u64,
}

impl TuningEstimate {
    fn mean(&self) -> Option<f64> {
        (self.started > 0).then(|| self.seconds / self.started as f64)
    }
}

impl RemainingTime {
    /// Creates an estimate for cases with their implementations and predictions.
    pub(super) fn new(cases: impl Iterator<Item = (CaseId, Implementation, Prediction)>) -> Self {
        let mut estimate = Self::default();
        for (id, implementation, predicted) in cases {
            let (preparing, measuring) = (predicted.preparation as f32, predicted.expected_measurement() as f32);
            estimate.preparing.pending += f64::from(preparing);
            estimate.measuring.pending += f64::from(measuring);
            estimate.tuning.entry(implementation).or_default().pending += 1;
            estimate.pending.insert(id, PendingCase { implementation, preparing, measuring, spent: None });
        }
        estimate
    }

    /// Charges seconds to a case.
    pub(super) fn add_spent(&mut self, case: &CaseId, stage: Stage, seconds: f64) {
        let Some(waiting) = self.pending.get_mut(case) else { return };
        let spent = waiting.spent.get_or_insert_default();
        match stage {
            Stage::Open | Stage::Check => {
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
                    tuning.started += 1;
                    tuning.pending = tuning.pending.saturating_sub(1);
                }
                spent.tuning += seconds;
                tuning.seconds += seconds;
            }
            // Peaks are measured once per device, independent of cases.
            Stage::Peaks => {}
        }
    }

    /// Removes a finished case. If `tells` is false, because it failed or finished earlier, it does not correct the
    /// estimate.
    pub(super) fn finish_case(&mut self, case: &CaseId, tells: bool) {
        let Some(PendingCase { implementation, preparing, measuring, spent }) = self.pending.remove(case) else {
            return;
        };
        let spent = spent.map(|spent| *spent).unwrap_or_default();
        self.preparing.finish(preparing.into(), spent.preparing, tells);
        self.measuring.finish(measuring.into(), spent.measuring, tells);
        let tuning = self.tuning.entry(implementation).or_default();
        if spent.tuning == 0.0 {
            tuning.pending = tuning.pending.saturating_sub(1);
            // It was tuned between two polls.
            tuning.started += u64::from(tells);
        }
    }

    /// Remaining seconds; `None` below one second.
    pub(super) fn seconds(&self) -> Option<f64> {
        let all = self.tuning.values().fold(TuningEstimate::default(), |all, one| TuningEstimate {
            started: all.started + one.started,
            seconds: all.seconds + one.seconds,
            pending: all.pending + one.pending,
        });
        // An implementation that was not reached yet is assumed to be average.
        let usual = all.mean().unwrap_or(0.0);
        let tuning: f64 = self.tuning.values().map(|one| one.pending as f64 * one.mean().unwrap_or(usual)).sum();
        Some(self.preparing.remaining() + self.measuring.remaining() + tuning).filter(|seconds| *seconds >= 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(at: usize) -> CaseId {
        CaseId::from(at.to_string())
    }

    /// Cases with one second of preparation and two of measurement; odd ones are `fused`.
    fn run(cases: usize) -> RemainingTime {
        let predicted = Prediction { preparation: 1.0, min_measurement: 1.0, max_measurement: 4.0 };
        let implementation = |at| if at % 2 == 0 { Implementation::Eager } else { Implementation::Fused };
        RemainingTime::new((0..cases).map(|at| (id(at), implementation(at), predicted)))
    }

    fn case(left: &mut RemainingTime, at: usize, [preparing, tuning, measuring]: [f64; 3]) {
        for (stage, seconds) in [(Stage::Open, preparing), (Stage::Tune, tuning), (Stage::Measure, measuring)] {
            left.add_spent(&id(at), stage, seconds);
        }
        left.finish_case(&id(at), true);
    }

    fn seconds(left: &RemainingTime) -> f64 {
        left.seconds().unwrap_or(0.0)
    }

    #[test]
    fn estimate_starts_at_prediction_and_ends_empty() {
        let mut left = run(10);
        assert_eq!(seconds(&left), 30.0);
        for at in 0..10 {
            assert_eq!(seconds(&left).round(), 30.0 - 3.0 * at as f64);
            case(&mut left, at, [1.0, 0.0, 2.0]);
        }
        assert_eq!(left.seconds(), None);
    }

    #[test]
    fn spent_time_is_subtracted() {
        let mut left = run(2);
        left.add_spent(&id(0), Stage::Measure, 1.5);
        assert_eq!(seconds(&left), 4.5);
        left.add_spent(&id(0), Stage::Measure, 60.0);
        assert_eq!(seconds(&left), 2.0);
    }

    #[test]
    fn stages_are_corrected_separately() {
        let mut left = run(100);
        for at in 0..50 {
            case(&mut left, at, [0.1, 0.0, 4.0]);
        }
        let expected = 50.0 * (1.0 * 0.1 + 2.0 * 2.0);
        assert!((seconds(&left) / expected - 1.0).abs() < 0.1, "{left:?}");
    }

    #[test]
    fn tuning_is_estimated_per_implementation() {
        let mut left = run(20);
        for at in 0..10 {
            case(&mut left, at, [1.0, if at % 2 == 0 { 0.0 } else { 30.0 }, 2.0]);
        }
        // Ten remain, half of them in the implementation that is tuned.
        assert_eq!(seconds(&left).round(), 10.0 * 3.0 + 5.0 * 30.0);
    }

    #[test]
    fn running_tuning_predicts_the_next() {
        let mut left = run(4);
        left.add_spent(&id(1), Stage::Tune, 40.0);
        assert_eq!(seconds(&left), 12.0 + 3.0 * 40.0);
    }

    #[test]
    fn failed_and_earlier_cases_are_ignored() {
        let mut left = run(10);
        (0..4).for_each(|at| left.finish_case(&id(at), false));
        assert_eq!(seconds(&left), 18.0);
        left.add_spent(&id(4), Stage::Open, 0.01);
        left.finish_case(&id(4), false);
        assert_eq!(seconds(&left).round(), 15.0);
        left.finish_case(&id(4), true);
        left.add_spent(&id(4), Stage::Open, 5.0);
        assert_eq!(seconds(&left).round(), 15.0);
    }
}
