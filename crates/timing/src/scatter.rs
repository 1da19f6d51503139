//! Scatter of windows, and patterns in their order.

use crate::interval::{centered_ranks, median_of_sorted, sort_order};
use calorimeter_case::Warning;
use calorimeter_case::record::Scatter;
use serde::Serialize;

/// Scatter statistics of a series of times. Nothing is excluded because of them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ScatterStats {
    /// Number of times.
    pub count: usize,
    /// Quantiles, deviation, outliers and autocorrelation.
    #[serde(flatten)]
    pub values: Scatter,
    /// True if the times rise or fall during the measurement: Spearman's coefficient exceeds 0.4, and not by chance.
    pub drift: bool,
    /// True if the times form two groups: the widest gap that leaves a tenth of them on either side is wider than the
    /// central four fifths of each group.
    pub bimodal: bool,
}

/// Minimum number of times for detecting patterns.
const MIN_TIMES: usize = 30;
/// Distance of outliers, in scaled median deviations.
const OUTLIER_DISTANCE: f64 = 5.0;
/// Scales a median deviation to the standard deviation of normal noise.
const MAD_TO_DEVIATION: f64 = 1.4826;
/// Minimum Spearman coefficient of a drift.
const DRIFT_CORRELATION: f64 = 0.4;
/// Minimum autocorrelation for a warning.
const NOTABLE_AUTOCORRELATION: f64 = 0.2;
/// Two-sided 1 % quantile of the normal distribution.
const NORMAL_99_PERCENT: f64 = 2.576;

impl ScatterStats {
    /// Computes the statistics of times in measurement order; `None` if there are none.
    pub fn from_times(times: &[f64]) -> Option<Self> {
        let order = sort_order(times);
        let sorted: Vec<f64> = order.iter().map(|&at| times[at]).collect();
        let median = median_of_sorted(&sorted)?;
        let positions = centered_ranks(&order, &sorted);
        let mut distances: Vec<f64> = times.iter().map(|time| (time - median).abs()).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let mad = median_of_sorted(&distances)?;
        // If half of the times are equal, the scatter is below the clock's step, which is used instead.
        let far = OUTLIER_DISTANCE * MAD_TO_DEVIATION * mad.max(smallest_step(&sorted));
        let resemblance = rank_correlation(&positions).filter(|_| times.len() >= MIN_TIMES);
        Some(Self {
            count: times.len(),
            values: Scatter {
                min: sorted[0],
                p05: quantile(&sorted, 0.05),
                p95: quantile(&sorted, 0.95),
                mad,
                outliers: distances.iter().filter(|&&distance| distance > far).count() as u32,
                autocorrelation: resemblance.map(|_| autocorrelation(&positions)),
            },
            drift: resemblance.is_some_and(|rho| rho.abs() > DRIFT_CORRELATION.max(chance_correlation(times.len()))),
            bimodal: is_bimodal(&sorted),
        })
    }

    /// Warnings for readers of the time.
    pub fn warnings(&self) -> impl Iterator<Item = Warning> {
        let notable = NOTABLE_AUTOCORRELATION.max(chance_correlation(self.count));
        let correlated = self.values.autocorrelation.is_some_and(|r| r.abs() > notable) && !self.drift;
        let warnings = [
            self.drift.then(Warning::drift),
            self.bimodal.then(Warning::bimodal),
            correlated.then(Warning::autocorrelation),
            (self.values.outliers as usize * 20 > self.count).then(Warning::outliers),
        ];
        warnings.into_iter().flatten()
    }
}

/// Rank correlation that independent times exceed in 1 % of series.
fn chance_correlation(count: usize) -> f64 {
    NORMAL_99_PERCENT / (count.max(2) as f64 - 1.0).sqrt()
}

/// Smallest nonzero difference between two times.
fn smallest_step(sorted: &[f64]) -> f64 {
    let steps = sorted.windows(2).map(|pair| pair[1] - pair[0]).filter(|&step| step > 0.0);
    steps.min_by(f64::total_cmp).unwrap_or(0.0)
}

/// Returns the interpolated quantile of sorted samples, which must not be empty.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    below + (above - below) * position.fract()
}

fn sum_of_squares(positions: &[f64]) -> f64 {
    positions.iter().map(|p| p * p).sum()
}

/// Spearman's coefficient of times and their order; `None` if all times are equal.
fn rank_correlation(positions: &[f64]) -> Option<f64> {
    let center = (positions.len() - 1) as f64 / 2.0;
    let indices: Vec<f64> = (0..positions.len()).map(|index| index as f64 - center).collect();
    let product: f64 = positions.iter().zip(&indices).map(|(p, index)| p * index).sum();
    let scale = (sum_of_squares(positions) * sum_of_squares(&indices)).sqrt();
    (scale > 0.0).then(|| product / scale)
}

fn autocorrelation(positions: &[f64]) -> f64 {
    positions.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / sum_of_squares(positions)
}

fn is_bimodal(sorted: &[f64]) -> bool {
    let (count, least) = (sorted.len(), sorted.len().div_ceil(10));
    if count < MIN_TIMES {
        return false;
    }
    let gap = |at: &usize| sorted[*at] - sorted[at - 1];
    let widest = (least..=count - least).max_by(|a, b| gap(a).total_cmp(&gap(b)));
    widest.is_some_and(|at| {
        let spread = |group: &[f64]| quantile(group, 0.9) - quantile(group, 0.1);
        gap(&at) > spread(&sorted[..at]).max(spread(&sorted[at..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn noise(count: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..count).map(|_| 100.0 + rng.random_range(-1.0..1.0)).collect()
    }

    /// Nearly normal variant of [`noise`].
    fn normal(count: usize, seed: u64) -> Vec<f64> {
        let sums = noise(12 * count, seed);
        sums.chunks(12).map(|twelve| twelve.iter().sum::<f64>() / 12.0).collect()
    }

    #[test]
    fn scatter_statistics_are_computed() {
        let mut times: Vec<f64> = (0..=100u32).map(f64::from).collect();
        times[100] = 1000.0;
        let series = ScatterStats::from_times(&times).unwrap();
        let expected = Scatter { min: 0.0, p05: 5.0, p95: 95.0, mad: 25.0, outliers: 1, ..series.values };
        assert_eq!((series.count, series.values), (101, expected));
        assert_eq!(ScatterStats::from_times(&[]), None);
    }

    #[test]
    fn white_noise_rarely_warns() {
        for (count, of) in [(30, noise as fn(usize, u64) -> Vec<f64>), (30, normal), (200, noise), (200, normal)] {
            let all: Vec<ScatterStats> =
                (0..1000).map(|seed| ScatterStats::from_times(&of(count, seed)).unwrap()).collect();
            let alarms = |of: fn(&ScatterStats) -> bool| all.iter().filter(|series| of(series)).count();
            assert!(alarms(|series| series.drift) <= 10, "drift, {count}: {}", alarms(|series| series.drift));
            assert!(alarms(|series| series.bimodal) <= 10, "bimodal, {count}: {}", alarms(|series| series.bimodal));
            let warned = alarms(|series| series.warnings().next().is_some());
            assert!(warned <= 20, "any of four, {count}: {warned}");
        }
    }

    #[test]
    fn steady_rise_is_a_drift() {
        let rising: Vec<f64> = noise(60, 1).iter().zip(0..60).map(|(t, i)| t + 0.03 * f64::from(i)).collect();
        let series = ScatterStats::from_times(&rising).unwrap();
        assert!(series.drift && series.warnings().next() == Some(Warning::drift()), "{series:?}");
    }

    #[test]
    fn two_clock_speeds_are_bimodal() {
        let two: Vec<f64> =
            noise(60, 2).iter().zip(0..60).map(|(t, i)| t * if i % 5 == 0 { 1.05 } else { 1.0 }).collect();
        let series = ScatterStats::from_times(&two).unwrap();
        assert!(series.bimodal && !series.drift, "{series:?}");
        let spiky: Vec<f64> = noise(60, 2)
            .iter()
            .zip(0..60)
            .map(|(t, i)| t * if i % 10 == 0 { 1.1 + f64::from(i) / 50.0 } else { 1.0 })
            .collect();
        assert!(!ScatterStats::from_times(&spiky).unwrap().bimodal);
    }

    #[test]
    fn autocorrelation_is_reported() {
        let wave: Vec<f64> = noise(200, 3).iter().zip(0..200).map(|(t, i)| t + (f64::from(i) / 5.0).sin()).collect();
        let series = ScatterStats::from_times(&wave).unwrap();
        assert!(series.values.autocorrelation.unwrap() > 0.3 && !series.drift, "{series:?}");
        assert_eq!((series.bimodal, series.values.outliers), (false, 0), "{series:?}");
        assert_eq!(series.warnings().collect::<Vec<_>>(), [Warning::autocorrelation()], "{series:?}");
    }

    #[test]
    fn coarse_clock_has_no_outliers() {
        let coarse: Vec<f64> = (0..100).map(|i| if i % 3 == 0 { 101.0 } else { 100.0 }).collect();
        let series = ScatterStats::from_times(&coarse).unwrap();
        assert_eq!((series.values.mad, series.values.outliers), (0.0, 0));
        assert_eq!(ScatterStats::from_times(&[5.0; 50]).unwrap().values.autocorrelation, None);
    }
}
