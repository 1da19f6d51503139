//! Time per launch from windows.

use crate::{Interval, Overhead};
use serde::Serialize;

/// Timed window, as read from the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Number of launches.
    pub launches: u32,
    /// Duration in nanoseconds.
    pub nanos: u64,
}

/// Nanoseconds per launch with the 95 % interval.
///
/// The interval is for the long-run median of a window on this machine, as far as the windows show it. Drift with a
/// time constant below about a fortieth of the number of windows is covered. Slower drift is not covered by any
/// interval over the windows, which have not seen the rest of its range: the interval then covers the median during the
/// measurement. Such drift raises a warning if it is visible, by [`crate::ScatterStats::drift`] or by a time that does not
/// converge. Speed-ups are taken in pairs and remain covered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimeEstimate {
    /// Median over windows.
    pub median: f64,
    /// Lower end of the interval, absent for too few windows.
    pub lo: Option<f64>,
    /// Upper end of the interval.
    pub hi: Option<f64>,
    /// False if the windows drift too slowly for their number: the interval then spans at least the medians of ten
    /// successive batches of windows.
    pub sound: bool,
}

impl TimeEstimate {
    /// Computes the estimate from windows in measurement order, on a stopwatch with or without a fixed cost per window.
    pub fn from_windows(windows: &[Window], overhead: Overhead) -> Option<Self> {
        let interval = Interval::from_samples(&per_launch(windows, overhead))?;
        let Interval { median, bounds, sound } = interval;
        Some(Self { median, lo: bounds.map(|b| b.0), hi: bounds.map(|b| b.1), sound })
    }

    /// Widens the interval at both ends by the reading error of the clock, per launch: equal readings do not show the
    /// position between two steps.
    pub fn widened(self, nanos: f64) -> Self {
        Self { lo: self.lo.map(|lo| (lo - nanos).max(0.0)), hi: self.hi.map(|hi| hi + nanos), ..self }
    }

    /// Half-width of the interval divided by the median.
    pub fn relative_half_width(&self) -> Option<f64> {
        Some((self.hi? - self.lo?) / 2.0 / self.median)
    }
}

/// Nanoseconds per launch, in order: of each window, or of each cycle of window lengths if every window contains a
/// fixed cost.
pub(crate) fn per_launch(windows: &[Window], overhead: Overhead) -> Vec<f64> {
    let slopes = match overhead {
        Overhead::Excluded => None,
        Overhead::Included => slopes(windows),
    };
    slopes.unwrap_or_else(|| windows.iter().map(|w| w.nanos as f64 / f64::from(w.launches)).collect())
}

/// Slope of time over launches in each cycle of window lengths; `None` for windows of equal length. A fixed cost
/// estimated once from all windows would shift all of them by one error, which no interval over them shows: half of
/// such intervals missed the true value in simulation.
fn slopes(windows: &[Window]) -> Option<Vec<f64>> {
    let mut lengths: Vec<u32> = windows.iter().map(|w| w.launches).collect();
    lengths.sort_unstable();
    lengths.dedup();
    if lengths.len() < 2 {
        return None;
    }
    let of_length = |&length: &u32| windows.iter().filter(|w| w.launches == length).collect::<Vec<_>>();
    let by_length: Vec<Vec<&Window>> = lengths.iter().map(of_length).collect();
    let cycles = by_length.iter().map(Vec::len).min()?;
    let mean = lengths.iter().map(|&l| f64::from(l)).sum::<f64>() / lengths.len() as f64;
    let squares: f64 = lengths.iter().map(|&l| (f64::from(l) - mean).powi(2)).sum();
    let slope = |cycle: usize| {
        let products = by_length.iter().map(|of| (f64::from(of[cycle].launches) - mean) * of[cycle].nanos as f64);
        products.sum::<f64>() / squares
    };
    Some((0..cycles).map(slope).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(fixed: u64, per_launch: u64) -> Vec<Window> {
        (0..32)
            .map(|i| (i % 4 + 1) * 50)
            .map(|launches| Window { launches, nanos: fixed + per_launch * u64::from(launches) })
            .collect()
    }

    #[test]
    fn fixed_cost_is_removed_exactly() {
        let estimate = TimeEstimate::from_windows(&windows(17_000, 21_000), Overhead::Included).unwrap();
        assert!((estimate.median - 21_000.0).abs() < 1e-6);
        assert_eq!(estimate.relative_half_width().map(|w| w < 1e-9), Some(true));
    }

    #[test]
    fn outliers_do_not_bias_the_slope() {
        let mut noisy = windows(10_000, 5_000);
        noisy[3].nanos *= 9;
        noisy[17].nanos *= 4;
        assert!((TimeEstimate::from_windows(&noisy, Overhead::Included).unwrap().median - 5_000.0).abs() < 1.0);
    }

    #[test]
    fn equal_lengths_use_the_mean_time() {
        let windows = vec![Window { launches: 4, nanos: 400 }; 8];
        assert_eq!(TimeEstimate::from_windows(&windows, Overhead::Included).unwrap().median, 100.0);
    }

    #[test]
    fn no_windows_give_no_estimate() {
        assert_eq!(TimeEstimate::from_windows(&[], Overhead::Excluded), None);
    }
}
