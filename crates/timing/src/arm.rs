//! Arms of a comparison.

use crate::{Stopwatch, TimeEstimate, Window, Work, median};

/// Arm of a comparison: a computation with its stopwatch.
pub struct Arm<'a> {
    pub(crate) work: &'a mut dyn Work,
    pub(crate) stopwatch: &'a mut dyn Stopwatch,
    pub(crate) baseline: Option<usize>,
    pub(crate) step_ns: u64,
}

impl<'a> Arm<'a> {
    /// Creates an arm without a baseline.
    pub fn new(work: &'a mut dyn Work, stopwatch: &'a mut dyn Stopwatch) -> Self {
        Self { work, stopwatch, baseline: None, step_ns: 0 }
    }

    /// Widens the intervals of the arm by half the resolution of its stopwatch.
    pub fn with_clock_step(mut self, nanos: u64) -> Self {
        self.step_ns = nanos;
        self
    }

    /// Time per launch over some of the arm's windows.
    pub(crate) fn estimate(&self, windows: &[Window]) -> Option<TimeEstimate> {
        Some(
            TimeEstimate::from_windows(windows, self.stopwatch.overhead())?.widened(self.half_step_per_launch(windows)),
        )
    }

    /// Half a step of the stopwatch, per launch.
    pub(crate) fn half_step_per_launch(&self, windows: &[Window]) -> f64 {
        let launches: Vec<f64> = windows.iter().map(|window| f64::from(window.launches)).collect();
        self.step_ns as f64 / 2.0 / median(&launches).unwrap_or(1.0).max(1.0)
    }

    /// Compares this arm with arm `baseline` of the same group, counted from 0.
    pub fn against(mut self, baseline: usize) -> Self {
        self.baseline = Some(baseline);
        self
    }
}
