//! Repeated samples of a rate on a machine with other load, and the peak that they support.

use serde::{Deserialize, Serialize};

/// Sampled rates in ascending order, each the best of a short period.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Looks(Vec<f64>);

/// Samples agree if their ratio is at least this.
const AGREE: f64 = 0.9;
/// Samples are unsettled if their ratio exceeds this.
const WIDE: f64 = 1.25;
/// Number of samples that is sufficient in any case.
const ENOUGH: usize = 15;

impl Looks {
    /// Adds a sample.
    pub fn add(&mut self, rate: f64) {
        self.0.push(rate);
        self.0.sort_by(f64::total_cmp);
    }

    /// Samples in ascending order.
    pub fn rates(&self) -> &[f64] {
        &self.0
    }

    /// Adds the samples of an earlier measurement.
    pub fn join(&mut self, others: &Self) {
        others.0.iter().for_each(|&rate| self.add(rate));
    }

    /// Highest rate that agrees with another sample, since a single sample may be wrong. Without agreement, the median.
    pub fn peak(&self) -> Option<f64> {
        let confirmed = self.0.windows(2).rev().find(|pair| pair[0] >= AGREE * pair[1]).map(|pair| pair[1]);
        confirmed.or_else(|| self.0.get(self.0.len() / 2).copied())
    }

    /// Lowest and highest rate.
    pub fn interval(&self) -> Option<(f64, f64)> {
        Some((*self.0.first()?, *self.0.last()?))
    }

    /// True if the samples scatter so much that further ones are worthwhile.
    pub fn are_unsettled(&self) -> bool {
        self.0.len() < ENOUGH && self.interval().is_some_and(|(lo, hi)| hi > WIDE * lo)
    }
}

impl FromIterator<f64> for Looks {
    fn from_iter<I: IntoIterator<Item = f64>>(rates: I) -> Self {
        let mut looks = Self::default();
        rates.into_iter().for_each(|rate| looks.add(rate));
        looks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_only_one_look_saw_is_no_peak() {
        for (rates, peak) in [
            // Eight samples of one memory under other load; its best STREAM result is 29.5.
            (&[14.7, 15.6, 22.6, 23.1, 24.1, 24.3, 43.0, 61.4][..], Some(24.3)),
            (&[100.0, 98.0, 60.0], Some(100.0)),
            (&[10.0, 20.0, 40.0], Some(20.0)),
            (&[30.0], Some(30.0)),
            (&[], None),
        ] {
            assert_eq!(rates.iter().copied().collect::<Looks>().peak(), peak, "{rates:?}");
        }
    }

    #[test]
    fn looks_that_wander_are_taken_again_until_there_are_enough() {
        let quiet: Looks = [24.0, 25.0, 24.5].into_iter().collect();
        let mut busy: Looks = [15.0, 24.0, 61.0].into_iter().collect();
        assert!(!quiet.are_unsettled() && busy.are_unsettled());
        assert_eq!((busy.interval(), busy.peak()), (Some((15.0, 61.0)), Some(24.0)));
        // Later samples may lower the peak, or raise it.
        busy.join(&[17.0, 16.5].into_iter().collect());
        assert_eq!(busy.peak(), Some(17.0));
        busy.join(&quiet);
        assert_eq!(busy.peak(), Some(25.0));
        busy.join(&std::iter::repeat_n(24.0, ENOUGH).collect());
        assert!(!busy.are_unsettled());
    }
}
