//! From windows to a time per launch.

use crate::{Interval, Overhead};

/// One timed window, as it was read: integers only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How many launches it held.
    pub launches: u32,
    /// How long it took.
    pub nanos: u64,
}

/// Nanoseconds per launch with its 95 % interval.
///
/// The interval is for the median of what a window takes on this machine in the long run, as far as the windows can tell.
/// A drift whose time constant is below about a fortieth of their number is covered. A slower one is covered by no
/// interval over them, because they have not seen where else it goes: the interval then says where the median was
/// meanwhile. Where such a drift shows, [`crate::Series::drift`] or a time that does not converge warns of it; speed-ups,
/// being taken in pairs, are covered all the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Median over windows.
    pub median: f64,
    /// Lower end of the interval, absent where there are too few windows for one.
    pub lo: Option<f64>,
    /// Upper end of the interval.
    pub hi: Option<f64>,
    /// False when the windows drift too slowly for their number: the interval is then likely too narrow.
    pub sound: bool,
    half_width: Option<f64>,
}

impl Estimate {
    /// The estimate from windows in the order in which they were read, on a stopwatch with or without a fixed cost per
    /// window.
    pub fn of(windows: &[Window], overhead: Overhead) -> Option<Self> {
        let interval = Interval::of(&per_launch(windows, overhead))?;
        let (half_width, Interval { median, bounds, sound, .. }) = (interval.half_width(), interval);
        Some(Self { median, lo: bounds.map(|b| b.0), hi: bounds.map(|b| b.1), sound, half_width })
    }

    /// The same with an interval that is wider at both ends by what one reading of the clock may be off, per launch: windows
    /// that all read the same do not tell where between two steps the truth is.
    pub fn blurred(self, nanos: f64) -> Self {
        Self {
            lo: self.lo.map(|lo| (lo - nanos).max(0.0)),
            hi: self.hi.map(|hi| hi + nanos),
            half_width: self.half_width.map(|width| width + nanos),
            ..self
        }
    }

    /// Half the interval's width over the median; where windows drift too slowly for it, half the range they stayed in.
    pub fn relative_half_width(&self) -> Option<f64> {
        Some(self.half_width? / self.median)
    }
}

/// Nanoseconds per launch, in order: of each window, or of each cycle of window lengths where every window holds a fixed
/// cost besides its launches.
pub fn per_launch(windows: &[Window], overhead: Overhead) -> Vec<f64> {
    let slopes = match overhead {
        Overhead::Outside => None,
        Overhead::Inside => slopes(windows),
    };
    slopes.unwrap_or_else(|| windows.iter().map(|w| w.nanos as f64 / f64::from(w.launches)).collect())
}

/// The slope of time over launches in each cycle of window lengths. A fixed cost estimated once from all windows would be
/// wrong by the same amount in every one of them, and no interval over them would show it: half of those intervals missed
/// the truth in simulation. Windows of one length have no slope.
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
