//! Histograms of window times, compact enough for the page.

use serde::Serialize;

use crate::record::{Record, WindowRecord};

/// Maximum number of bins.
const MAX_BINS: usize = 30;

/// Numbers of windows by time per pass, in bins of equal width.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowHistogram {
    /// Ends of the bins in nanoseconds.
    lo: f64,
    hi: f64,
    counts: Vec<u32>,
    /// Number of windows above `hi`.
    above: u32,
}

impl WindowHistogram {
    /// Histogram of the windows of a case; `None` for fewer than two windows.
    pub(super) fn new(record: &Record) -> Option<Self> {
        let per_pass =
            |window: &WindowRecord| (window.launches > 0).then(|| window.nanos as f64 / f64::from(window.launches));
        let mut times: Vec<f64> = record.time.windows.iter().filter_map(per_pass).collect();
        times.sort_unstable_by(f64::total_cmp);
        let (&lo, &max) = (times.first()?, times.last()?);
        if times.len() < 2 {
            return None;
        }
        let quantile = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
        // A few outliers must not squeeze all other windows into one bin.
        let limit = quantile(0.5) + 5.0 * (quantile(0.75) - quantile(0.25));
        let hi = if limit > lo { limit.min(max) } else { max };
        let bins = if hi > lo { ((times.len() as f64).sqrt().ceil() as usize).clamp(4, MAX_BINS) } else { 1 };
        let mut counts = vec![0; bins];
        let inside = times.iter().filter(|time| **time <= hi);
        for time in inside.clone() {
            let place = if hi > lo { (time - lo) / (hi - lo) * bins as f64 } else { 0.0 };
            counts[(place as usize).min(bins - 1)] += 1;
        }
        let above = (times.len() - inside.count()) as u32;
        Some(Self { lo: round(lo), hi: round(hi), counts, above })
    }
}

/// Rounds to six digits.
fn round(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Status};

    fn histogram(windows: &[(u32, u64)]) -> Option<WindowHistogram> {
        let mut record = Record::new(Case::default(), Status::Ok);
        let window = |&(launches, nanos): &(u32, u64)| WindowRecord { launches, nanos, ..WindowRecord::default() };
        record.time.windows = windows.iter().map(window).collect();
        WindowHistogram::new(&record)
    }

    #[test]
    fn windows_are_counted_by_time_per_pass() {
        let found = histogram(&[(2, 200), (1, 100), (4, 480), (1, 140), (0, 7), (1, 160)]).unwrap();
        assert_eq!(found, WindowHistogram { lo: 100.0, hi: 160.0, counts: vec![2, 1, 1, 1], above: 0 });
    }

    #[test]
    fn outliers_are_counted_separately() {
        let mut windows: Vec<(u32, u64)> = (100..120).map(|nanos| (1, nanos)).collect();
        windows.push((1, 90_000));
        let found = histogram(&windows).unwrap();
        assert_eq!((found.above, found.counts.iter().sum::<u32>()), (1, 20));
        assert!(found.hi < 200.0, "{found:?}");
    }

    #[test]
    fn equal_windows_form_one_bin() {
        assert_eq!(histogram(&[(1, 5), (1, 5)]).unwrap().counts, [2]);
        assert_eq!(histogram(&[(1, 5)]), None);
        assert_eq!(histogram(&[]), None);
    }
}
