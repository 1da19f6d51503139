//! Detection of a shift that many ratios share.

use crate::{Interval, Verdict};
use serde::Serialize;

/// Common factor of many ratios.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CommonShift {
    /// Median ratio.
    pub factor: f64,
    /// Lower end of the 95 % interval.
    pub lo: f64,
    /// Upper end of the 95 % interval.
    pub hi: f64,
    /// Share of the ratios within the margin of the factor.
    pub share: f64,
}

/// Minimum share of ratios near the median; below it they have no common shift.
const MIN_SHARE: f64 = 0.75;

impl CommonShift {
    /// Minimum number of ratios for an interval.
    pub const MIN_RATIOS: usize = 6;

    /// Computes the factor by which the ratios moved together. `None` if it is within the margin, if they did not move
    /// together, or for fewer than [`MIN_RATIOS`](Self::MIN_RATIOS) ratios.
    ///
    /// ```
    /// use calorimeter_timing::CommonShift;
    ///
    /// let ratios = [0.91, 0.9, 0.905, 0.9, 0.895, 0.9, 0.9, 0.9, 0.9, 1.3];
    /// let slower = CommonShift::from_ratios(&ratios, 0.02).unwrap();
    /// assert!((slower.factor - 0.9).abs() < 1e-9 && slower.share > 0.8);
    /// assert_eq!(CommonShift::from_ratios(&[0.9, 0.8, 0.7, 0.6, 0.5, 0.4], 0.02), None);
    /// assert_eq!(CommonShift::from_ratios(&[1.0; 10], 0.02), None);
    /// ```
    pub fn from_ratios(ratios: &[f64], margin: f64) -> Option<Self> {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let interval = Interval::from_samples(&logs)?;
        let (lo, hi) = interval.bounds?;
        let near = |log: &&f64| (**log - interval.median).abs() <= margin.ln_1p();
        let alike = logs.iter().filter(near).count() as f64 / logs.len() as f64;
        let shift = Self { factor: interval.median.exp(), lo: lo.exp(), hi: hi.exp(), share: alike };
        let moved =
            matches!(Verdict::from_interval(Some(shift.lo), Some(shift.hi), margin), Verdict::Faster | Verdict::Slower);
        (moved && alike >= MIN_SHARE).then_some(shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_ratios_have_no_shift() {
        assert_eq!(CommonShift::from_ratios(&[0.5; CommonShift::MIN_RATIOS - 1], 0.02), None);
        assert!(CommonShift::from_ratios(&[0.5; CommonShift::MIN_RATIOS], 0.02).is_some());
    }

    #[test]
    fn shift_within_margin_is_ignored() {
        assert_eq!(CommonShift::from_ratios(&[0.99; 20], 0.02), None);
        assert!(CommonShift::from_ratios(&[0.97; 20], 0.02).is_some());
    }
}
