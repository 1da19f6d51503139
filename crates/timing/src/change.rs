//! Speed-ups between two independent measurements.

use crate::median;
use crate::student::{critical_value, two_sided_tail};
use serde::Serialize;

/// A value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ValueWithInterval {
    /// Median or mean.
    pub center: f64,
    /// Lower end of the interval.
    pub lo: f64,
    /// Upper end of the interval.
    pub hi: f64,
}

/// Speed-up between two measurements: above 1 is faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SpeedChange {
    /// Time before divided by time after.
    pub ratio: f64,
    /// Lower end of the 95 % interval.
    pub lo: f64,
    /// Upper end of the 95 % interval.
    pub hi: f64,
    /// p-value: probability of such a difference, or a larger one, without a change.
    pub p: f64,
    #[serde(skip)]
    degrees: usize,
}

/// Degrees of freedom of the width of median intervals. The distance of two order statistics of n windows scatters like
/// an estimate with about √n of them; thirty windows, the minimum of a run, on two sides give eleven.
const INTERVAL_DEGREES_OF_FREEDOM: usize = 11;

impl SpeedChange {
    /// Compares two values with intervals.
    ///
    /// ```
    /// use calorimeter_timing::{SpeedChange, ValueWithInterval};
    ///
    /// let value = |center: f64| ValueWithInterval { center, lo: center * 0.995, hi: center * 1.005 };
    /// let change = SpeedChange::from_intervals(value(100.0), value(105.0)).unwrap();
    /// assert!(change.hi < 1.0 && change.p < 1e-6, "{change:?}");
    /// assert!(SpeedChange::from_intervals(value(100.0), value(100.1)).unwrap().p > 0.5);
    /// ```
    pub fn from_intervals(before: ValueWithInterval, after: ValueWithInterval) -> Option<Self> {
        Self::new(quotient(before, after), INTERVAL_DEGREES_OF_FREEDOM)
    }

    /// Compares the values of several processes, at least two of them on one side, with a pooled variance: both sides
    /// run on one machine, and neither alone has enough processes to estimate it.
    pub fn from_processes(before: &[f64], after: &[f64]) -> Option<Self> {
        let (before, after) = (LogStats::from_values(before)?, LogStats::from_values(after)?);
        let degrees = before.count + after.count - 2;
        if degrees == 0 {
            return None;
        }
        let variance = (before.squares + after.squares) / degrees as f64;
        let error = (variance * (1.0 / before.count as f64 + 1.0 / after.count as f64)).sqrt();
        let (log, half) = (before.mean - after.mean, critical_value(degrees) * error);
        Self::new(ValueWithInterval { center: log.exp(), lo: (log - half).exp(), hi: (log + half).exp() }, degrees)
    }

    /// Divides the change by a shift that all cases share.
    pub fn relative_to(self, shared: ValueWithInterval) -> Option<Self> {
        let Self { ratio, lo, hi, degrees, .. } = self;
        Self::new(quotient(ValueWithInterval { center: ratio, lo, hi }, shared), degrees)
    }

    /// Widens the interval to at least `half` on each side, as a difference of logarithms.
    pub fn with_min_half_width(self, half: f64) -> Option<Self> {
        let Self { ratio, lo, hi, degrees, .. } = self;
        Self::new(
            ValueWithInterval { center: ratio, lo: lo.min(ratio * (-half).exp()), hi: hi.max(ratio * half.exp()) },
            degrees,
        )
    }

    /// Half-width of the scatter of changes that should all be 1: 95 % of them are within this distance of their
    /// median, as a difference of logarithms. Robust against a few real changes.
    pub fn scatter_half_width(changes: &[Self]) -> Option<f64> {
        let logs: Vec<f64> = changes.iter().map(|change| change.ratio.ln()).collect();
        let middle = median(&logs)?;
        let distances: Vec<f64> = logs.iter().map(|log| (log - middle).abs()).collect();
        // Half of all normal samples are within 0.6745 standard deviations.
        Some(critical_value(INTERVAL_DEGREES_OF_FREEDOM) * median(&distances)? / 0.6745)
    }

    fn new(ratio: ValueWithInterval, degrees: usize) -> Option<Self> {
        let ValueWithInterval { center: middle, lo, hi } = ratio;
        let towards_one = if middle > 1.0 { middle / lo } else { hi / middle };
        let distance = middle.ln().abs();
        // A ratio of 1 is no difference, however narrow the interval is.
        let t = if distance == 0.0 { 0.0 } else { critical_value(degrees) * distance / towards_one.ln() };
        let change = Self { ratio: middle, lo, hi, p: two_sided_tail(t, degrees), degrees };
        ([middle, lo, hi, change.p].iter().all(|number| number.is_finite()) && middle > 0.0).then_some(change)
    }
}

/// Quotient of two values, with independent errors: each end adds the logarithmic distances of both values' ends in
/// quadrature.
fn quotient(over: ValueWithInterval, under: ValueWithInterval) -> ValueWithInterval {
    let middle = over.center / under.center;
    let below = (over.center / over.lo).ln().hypot((under.hi / under.center).ln());
    let above = (over.hi / over.center).ln().hypot((under.center / under.lo).ln());
    ValueWithInterval { center: middle, lo: middle * (-below).exp(), hi: middle * above.exp() }
}

/// Statistics of the logarithms of values.
struct LogStats {
    count: usize,
    mean: f64,
    /// Sum of squared distances from the mean.
    squares: f64,
}

impl LogStats {
    fn from_values(found: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = found.iter().map(|value| value.ln()).collect();
        if logs.is_empty() || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        Some(Self { count: logs.len(), mean, squares: logs.iter().map(|log| (log - mean).powi(2)).sum() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::normal;
    use crate::{Interval, discoveries};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn value(rng: &mut ChaCha8Rng, nanos: f64) -> ValueWithInterval {
        let windows: Vec<f64> = (0..30).map(|_| nanos * (0.01 * normal(rng)).exp()).collect();
        let interval = Interval::from_samples(&windows).unwrap();
        let (lo, hi) = interval.bounds.unwrap();
        ValueWithInterval { center: interval.median, lo, hi }
    }

    #[test]
    fn interval_and_p_value_agree() {
        let after = ValueWithInterval { center: 100.0, lo: 99.0, hi: 100.0 };
        for (middle, below) in [(101.0, true), (100.9, false)] {
            let before = ValueWithInterval { center: middle, lo: middle, hi: middle };
            let change = SpeedChange::from_intervals(before, ValueWithInterval { hi: 101.0, ..after }).unwrap();
            assert_eq!((change.lo >= 1.0, change.p <= 0.05 + 1e-4), (below, below), "{change:?}");
        }
    }

    #[test]
    fn false_discoveries_are_controlled() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let (mut before_control, mut after_control, mut found) = (0, 0, 0);
        for _ in 0..40 {
            let mut changes: Vec<SpeedChange> = (0..500)
                .map(|_| SpeedChange::from_intervals(value(&mut rng, 1000.0), value(&mut rng, 1000.0)).unwrap())
                .collect();
            before_control += changes.iter().filter(|change| change.lo > 1.0 || change.hi < 1.0).count();
            let real = |changes: &[SpeedChange]| discoveries(&changes.iter().map(|c| c.p).collect::<Vec<_>>(), 0.05);
            after_control += real(&changes).iter().filter(|real| **real).count();
            changes[17] = SpeedChange::from_intervals(value(&mut rng, 1000.0), value(&mut rng, 1050.0)).unwrap();
            found += usize::from(real(&changes)[17]);
        }
        assert!(before_control <= 40 * 25, "{before_control} of {}", 40 * 500);
        assert!(after_control <= 2 && found == 40, "{after_control} false, {found} of 40 found");
    }

    #[test]
    fn process_scatter_is_not_a_change() {
        let mut rng = ChaCha8Rng::seed_from_u64(6);
        let mut side = || [(); 3].map(|()| 1000.0 * (0.03 * normal(&mut rng)).exp());
        let mut wrong = 0;
        for _ in 0..2000 {
            let change = SpeedChange::from_processes(&side(), &side()).unwrap();
            wrong += usize::from(change.lo > 1.0 || change.hi < 1.0);
            assert_eq!(change.p < 0.0499, change.lo > 1.0 || change.hi < 1.0, "{change:?}");
        }
        assert!((70..=130).contains(&wrong), "{wrong} of 2000");
        assert_eq!(SpeedChange::from_processes(&[1.0], &[1.0]), None);
        assert_eq!(SpeedChange::from_processes(&[2.0, 2.0], &[2.0]).map(|change| change.p), Some(1.0));
    }

    #[test]
    fn common_shift_is_removed_from_changes() {
        let slower = |by: f64| ValueWithInterval { center: 100.0 * by, lo: 99.0 * by, hi: 101.0 * by };
        let shared = ValueWithInterval { center: 0.9, lo: 0.89, hi: 0.91 };
        let change = SpeedChange::from_intervals(slower(1.0), slower(1.0 / 0.9)).unwrap();
        assert!(change.hi < 1.0 && change.p < 1e-6, "{change:?}");
        let remaining = change.relative_to(shared).unwrap();
        assert!((remaining.ratio - 1.0).abs() < 1e-9 && remaining.p > 0.9, "{remaining:?}");
        assert!(remaining.hi / remaining.lo > change.hi / change.lo, "{remaining:?}");
    }

    #[test]
    fn scatter_bounds_interval_width() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let exact = |nanos: f64| ValueWithInterval { center: nanos, lo: nanos * 0.9999, hi: nanos * 1.0001 };
        // Intervals of 0.01 % and runs that differ by 3 %: each change looks significant.
        let mut change =
            || SpeedChange::from_intervals(exact(1000.0), exact(1000.0 * (0.03 * normal(&mut rng)).exp())).unwrap();
        let mut changes: Vec<SpeedChange> = (0..200).map(|_| change()).collect();
        assert!(changes.iter().filter(|change| change.p < 0.05).count() > 190);
        changes[0] = SpeedChange::from_intervals(exact(1000.0), exact(1300.0)).unwrap();
        let half = SpeedChange::scatter_half_width(&changes).unwrap();
        assert!((0.05..0.08).contains(&half), "{half}");
        let p_values: Vec<f64> = changes.iter().map(|change| change.with_min_half_width(half).unwrap().p).collect();
        let found = discoveries(&p_values, 0.05);
        assert_eq!((found[0], found.iter().filter(|found| **found).count()), (true, 1));
        assert_eq!(changes[1].with_min_half_width(0.0), Some(changes[1]));
        assert_eq!(SpeedChange::scatter_half_width(&[]), None);
    }

    #[test]
    fn nonpositive_values_have_no_change() {
        let value = |middle| ValueWithInterval { center: middle, lo: middle, hi: middle };
        assert_eq!(SpeedChange::from_intervals(value(0.0), value(1.0)), None);
        assert_eq!(SpeedChange::from_intervals(value(1.0), value(f64::NAN)), None);
        assert_eq!(SpeedChange::from_processes(&[1.0, -1.0], &[1.0]), None);
    }
}
