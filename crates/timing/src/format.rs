//! Display of estimates and comparisons.

use crate::{Comparison, TimeEstimate};
use std::fmt::{self, Display, Formatter};

/// Formats the time with four digits and the half-width in percent: `12.34 µs ±0.5%`, or `12.34 µs ±?` with too few
/// windows for an interval.
impl Display for TimeEstimate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let half = self.lo.zip(self.hi).map(|(lo, hi)| 50.0 * (hi - lo) / self.median).filter(|half| half.is_finite());
        f.pad(&format!("{} {}", nanoseconds(self.median), percent(half)))
    }
}

/// Formats ratio, interval and verdict: `1.320x [1.302, 1.341] FASTER`.
impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { ratio, verdict, .. } = self;
        let interval = self.lo.zip(self.hi).map(|(lo, hi)| format!(" [{}, {}]", four_digits(lo), four_digits(hi)));
        f.pad(&format!("{}x{} {verdict}", four_digits(*ratio), interval.unwrap_or_default()))
    }
}

fn percent(half: Option<f64>) -> String {
    let decimals = match half {
        None => return "±?".to_owned(),
        Some(..0.095) => 2,
        Some(..9.95) => 1,
        Some(_) => 0,
    };
    format!("±{:.decimals$}%", half.unwrap_or_default())
}

fn nanoseconds(nanos: f64) -> String {
    // Rounded first, so that 999.96 ns is 1.000 µs.
    let rounded = format!("{nanos:.3e}").parse().unwrap_or(nanos);
    let (scale, unit) = match rounded {
        ..1e3 => (1.0, "ns"),
        ..1e6 => (1e3, "µs"),
        ..1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    format!("{} {unit}", four_digits(rounded / scale))
}

fn four_digits(value: f64) -> String {
    let scientific = format!("{value:.3e}");
    let exponent: i32 = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let decimals = (3 - exponent).clamp(0, 6) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use crate::{Comparison, Overhead, TimeEstimate, Window};

    fn time(nanos: &[u64]) -> String {
        let windows: Vec<Window> = nanos.iter().map(|&nanos| Window { launches: 1, nanos }).collect();
        TimeEstimate::from_windows(&windows, Overhead::Excluded).unwrap().to_string()
    }

    #[test]
    fn times_show_unit_and_half_width() {
        assert_eq!(time(&[12_340; 8]), "12.34 µs ±0.00%");
        assert_eq!(time(&[990, 1_000, 1_010, 990, 1_000, 1_010, 990, 1_010]), "1.000 µs ±1.0%");
        assert_eq!(time(&[999]), "999.0 ns ±?");
        assert_eq!(time(&[2_500_000_000; 3]), "2.500 s ±?");
    }

    #[test]
    fn speedups_show_interval_and_verdict() {
        let compared =
            |baseline: &[f64], candidate: &[f64]| Comparison::paired(baseline, candidate, 0.02).unwrap().to_string();
        assert_eq!(compared(&[3.0; 8], &[2.0; 8]), "1.500x [1.500, 1.500] FASTER");
        assert_eq!(compared(&[3.0; 3], &[2.0; 3]), "1.500x UNCLEAR");
        assert_eq!(compared(&[1.0; 8], &[1.0; 8]), "1.000x [1.000, 1.000] SAME");
        assert_eq!(
            format!("{:>30}|", Comparison::paired(&[1.0; 3], &[1.0; 3], 0.0).unwrap()),
            "                1.000x UNCLEAR|"
        );
    }
}
