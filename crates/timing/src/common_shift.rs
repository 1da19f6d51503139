//! Whether many ratios moved together.

use crate::{Interval, Verdict};

/// What many ratios have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CommonShift {
    /// The ratio in the middle.
    pub factor: f64,
    /// Lower end of its 95 % interval.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// The share of the ratios that lie within the margin of it.
    pub alike: f64,
}

/// Where fewer of them lie together, they did not move as one.
const ALIKE: f64 = 0.75;

impl CommonShift {
    /// Of fewer ratios there is no interval.
    pub const FEWEST: usize = 6;

    /// The factor by which all of them moved, by more than the margin; `None` where they did not, or not together, or where
    /// they are fewer than [`FEWEST`](Self::FEWEST).
    ///
    /// ```
    /// use calorimeter_timing::CommonShift;
    ///
    /// let slower = CommonShift::of(&[0.91, 0.9, 0.905, 0.9, 0.895, 0.9, 0.9, 0.9, 0.9, 1.3], 0.02).unwrap();
    /// assert!((slower.factor - 0.9).abs() < 1e-9 && slower.alike > 0.8);
    /// assert_eq!(CommonShift::of(&[0.9, 0.8, 0.7, 0.6, 0.5, 0.4], 0.02), None);
    /// assert_eq!(CommonShift::of(&[1.0; 10], 0.02), None);
    /// ```
    pub fn of(ratios: &[f64], margin: f64) -> Option<Self> {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let interval = Interval::of(&logs)?;
        let (lo, hi) = interval.bounds?;
        let near = |log: &&f64| (**log - interval.median).abs() <= margin.ln_1p();
        let alike = logs.iter().filter(near).count() as f64 / logs.len() as f64;
        let shift = Self { factor: interval.median.exp(), lo: lo.exp(), hi: hi.exp(), alike };
        let moved = matches!(Verdict::of(Some(shift.lo), Some(shift.hi), margin), Verdict::Faster | Verdict::Slower);
        (moved && alike >= ALIKE).then_some(shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ratio_fewer_is_too_few() {
        assert_eq!(CommonShift::of(&[0.5; CommonShift::FEWEST - 1], 0.02), None);
        assert!(CommonShift::of(&[0.5; CommonShift::FEWEST], 0.02).is_some());
    }

    #[test]
    fn a_shift_within_the_margin_is_none() {
        assert_eq!(CommonShift::of(&[0.99; 20], 0.02), None);
        assert!(CommonShift::of(&[0.97; 20], 0.02).is_some());
    }
}
