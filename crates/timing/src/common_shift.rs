//! Detection of a shift that many ratios share.

use crate::{Interval, Verdict};

/// Common factor of many ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct CommonShift {
    /// Median ratio.
    pub factor: f64,
    /// Lower end of the 95 % interval.
    pub lo: f64,
    /// Upper end of the 95 % interval.
    pub hi: f64,
    /// Share of the ratios within the margin of the factor.
    pub alike: f64,
}

/// Minimum share of ratios near the median; below it they have no common shift.
const ALIKE: f64 = 0.75;

impl CommonShift {
    /// Minimum number of ratios for an interval.
    pub const FEWEST: usize = 6;

    /// Computes the factor by which the ratios moved together. `None` if it is within the margin, if they did not move
    /// together, or for fewer than [`FEWEST`](Self::FEWEST) ratios.
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
