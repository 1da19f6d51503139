//! Repeated samples of a rate on a machine with other load, and the peak that they support.

use serde::{Deserialize, Serialize};

/// Sampled rates in ascending order, each the best of a short period.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RateSamples(Vec<f64>);

/// Samples agree if their ratio is at least this.
const MIN_AGREEMENT: f64 = 0.9;
/// Samples are unsettled if their ratio exceeds this.
const MAX_SPREAD: f64 = 1.25;
/// Number of samples that is sufficient in any case.
const MAX_SAMPLES: usize = 15;

impl RateSamples {
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
    pub fn extend_from(&mut self, others: &Self) {
        others.0.iter().for_each(|&rate| self.add(rate));
    }

    /// Highest rate that agrees with another sample, since a single sample may be wrong. Without agreement, the median.
    pub fn peak(&self) -> Option<f64> {
        let confirmed = self.0.windows(2).rev().find(|pair| pair[0] >= MIN_AGREEMENT * pair[1]).map(|pair| pair[1]);
        confirmed.or_else(|| self.0.get(self.0.len() / 2).copied())
    }

    /// Lowest and highest rate.
    pub fn interval(&self) -> Option<(f64, f64)> {
        Some((*self.0.first()?, *self.0.last()?))
    }

    /// True if the samples scatter so much that further ones are worthwhile.
    pub fn needs_more_samples(&self) -> bool {
        self.0.len() < MAX_SAMPLES && self.interval().is_some_and(|(lo, hi)| hi > MAX_SPREAD * lo)
    }
}

impl FromIterator<f64> for RateSamples {
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
    fn peaks_need_two_agreeing_samples() {
        for (rates, peak) in [
            // Eight samples of one memory under other load; its best STREAM result is 29.5.
            (&[14.7, 15.6, 22.6, 23.1, 24.1, 24.3, 43.0, 61.4][..], Some(24.3)),
            (&[100.0, 98.0, 60.0], Some(100.0)),
            (&[10.0, 20.0, 40.0], Some(20.0)),
            (&[30.0], Some(30.0)),
            (&[], None),
        ] {
            assert_eq!(rates.iter().copied().collect::<RateSamples>().peak(), peak, "{rates:?}");
        }
    }

    #[test]
    fn scattered_samples_are_repeated_up_to_a_limit() {
        let quiet: RateSamples = [24.0, 25.0, 24.5].into_iter().collect();
        let mut busy: RateSamples = [15.0, 24.0, 61.0].into_iter().collect();
        assert!(!quiet.needs_more_samples() && busy.needs_more_samples());
        assert_eq!((busy.interval(), busy.peak()), (Some((15.0, 61.0)), Some(24.0)));
        // Later samples may lower the peak, or raise it.
        busy.extend_from(&[17.0, 16.5].into_iter().collect());
        assert_eq!(busy.peak(), Some(17.0));
        busy.extend_from(&quiet);
        assert_eq!(busy.peak(), Some(25.0));
        busy.extend_from(&std::iter::repeat_n(24.0, MAX_SAMPLES).collect());
        assert!(!busy.needs_more_samples());
    }
}
