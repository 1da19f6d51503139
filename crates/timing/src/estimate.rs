//! From windows to a time per launch.

use crate::{Interval, Overhead, median};

/// One timed window, as it was read: integers only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How many launches it held.
    pub launches: u32,
    /// How long it took.
    pub nanos: u64,
}

/// Nanoseconds per launch with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Median over windows.
    pub median: f64,
    /// Lower end of the interval, absent below six windows.
    pub lo: Option<f64>,
    /// Upper end of the interval.
    pub hi: Option<f64>,
}

impl Estimate {
    /// The estimate from windows read on a stopwatch with or without a fixed cost per window.
    pub fn of(windows: &[Window], overhead: Overhead) -> Option<Self> {
        let Interval { median, bounds } = Interval::of(&per_launch(windows, overhead))?;
        Some(Self { median, lo: bounds.map(|b| b.0), hi: bounds.map(|b| b.1) })
    }

    /// Half the interval's width over the median.
    pub fn relative_half_width(&self) -> Option<f64> {
        Some((self.hi? - self.lo?) / 2.0 / self.median)
    }
}

/// Nanoseconds per launch of each window, the windows' fixed cost removed where there is one.
pub fn per_launch(windows: &[Window], overhead: Overhead) -> Vec<f64> {
    let fixed = match overhead {
        Overhead::Outside => 0.0,
        Overhead::Inside => fixed_cost(windows),
    };
    windows.iter().map(|w| (w.nanos as f64 - fixed) / f64::from(w.launches)).collect()
}

/// The cost of a window besides its launches: the intercept of a Theil-Sen line through the medians per window length.
fn fixed_cost(windows: &[Window]) -> f64 {
    let mut lengths: Vec<u32> = windows.iter().map(|w| w.launches).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let points: Vec<(f64, f64)> = lengths
        .iter()
        .filter_map(|&length| {
            let times: Vec<f64> = windows.iter().filter(|w| w.launches == length).map(|w| w.nanos as f64).collect();
            Some((f64::from(length), median(&times)?))
        })
        .collect();
    let slopes: Vec<f64> = points
        .iter()
        .enumerate()
        .flat_map(|(i, a)| points[i + 1..].iter().map(move |b| (b.1 - a.1) / (b.0 - a.0)))
        .collect();
    let Some(slope) = median(&slopes) else { return 0.0 };
    let intercepts: Vec<f64> = points.iter().map(|(length, time)| time - slope * length).collect();
    // A wait cannot take less than no time; below zero is noise around a cost too small to see.
    median(&intercepts).unwrap_or(0.0).max(0.0)
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
    fn a_fixed_cost_is_removed_exactly() {
        let estimate = Estimate::of(&windows(17_000, 21_000), Overhead::Inside).unwrap();
        assert!((estimate.median - 21_000.0).abs() < 1e-6);
        assert_eq!(estimate.relative_half_width().map(|w| w < 1e-9), Some(true));
    }

    #[test]
    fn outliers_do_not_move_the_fixed_cost() {
        let mut noisy = windows(10_000, 5_000);
        noisy[3].nanos *= 9;
        noisy[17].nanos *= 4;
        assert!((Estimate::of(&noisy, Overhead::Inside).unwrap().median - 5_000.0).abs() < 1.0);
    }

    #[test]
    fn windows_of_one_length_have_no_slope_to_take() {
        let same = vec![Window { launches: 4, nanos: 400 }; 8];
        assert_eq!(Estimate::of(&same, Overhead::Inside).unwrap().median, 100.0);
    }

    #[test]
    fn without_windows_there_is_no_estimate() {
        assert_eq!(Estimate::of(&[], Overhead::Outside), None);
    }
}
