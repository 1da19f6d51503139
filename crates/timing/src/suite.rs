//! Geometric mean of many speed-ups with an interval, by the bootstrap or, for very many, by a normal approximation.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Returns the geometric mean of positive ratios; `None` if there are none.
pub fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> Option<f64> {
    let logs: Vec<f64> = ratios.into_iter().map(f64::ln).collect();
    mean(&logs).map(f64::exp)
}

fn mean(logs: &[f64]) -> Option<f64> {
    (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
}

/// Geometric mean of the speed-ups of several cases, with a 95 % interval over cases: its dependence on the choice of
/// cases. For few cases the bootstrap is too narrow: it covers 84 % for 5 normal cases and 93 % for 20.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SuiteMean {
    /// Geometric mean.
    pub ratio: f64,
    /// Lower end of the interval, absent below five cases.
    pub lo: Option<f64>,
    /// Upper end of the interval.
    pub hi: Option<f64>,
    /// Number of cases.
    pub cases: usize,
}

const RESAMPLES: usize = 10_000;
const MIN_CASES: usize = 5;
/// Maximum number of cases for the bootstrap; beyond it the bootstrap is slow and equals the normal approximation.
const MAX_BOOTSTRAP_CASES: usize = 1000;

impl SuiteMean {
    /// Computes the mean of positive ratios, one per case; `None` if there are none.
    pub fn from_ratios(ratios: &[f64], seed: u64) -> Option<Self> {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let ratio = mean(&logs)?.exp();
        let bounds = match logs.len() {
            0..MIN_CASES => None,
            MIN_CASES..=MAX_BOOTSTRAP_CASES => Some(bootstrap(&logs, RESAMPLES, seed)),
            _ => Some(normal_interval(&logs)),
        };
        let (lo, hi) = (bounds.map(|b| b.0.exp()), bounds.map(|b| b.1.exp()));
        Some(Self { ratio, lo, hi, cases: logs.len() })
    }
}

/// 2.5 % and 97.5 % quantiles of the means of resampled logarithms.
fn bootstrap(logs: &[f64], resamples: usize, seed: u64) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut resampled = || (0..logs.len()).map(|_| logs[rng.random_range(0..logs.len())]).sum::<f64>();
    let mut sums: Vec<f64> = (0..resamples).map(|_| resampled()).collect();
    sums.sort_unstable_by(f64::total_cmp);
    let tail = resamples / 40;
    (sums[tail] / logs.len() as f64, sums[resamples - 1 - tail] / logs.len() as f64)
}

/// 2.5 % and 97.5 % quantiles of a normal distribution around the mean of the logarithms.
fn normal_interval(logs: &[f64]) -> (f64, f64) {
    const NORMAL: f64 = 1.96;
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = NORMAL * (variance / n).sqrt();
    (mean - half, mean + half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reciprocal_ratios_average_to_one() {
        assert!((geometric_mean([2.0, 0.5]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean([]), None);
    }

    #[test]
    fn interval_contains_mean_and_is_reproducible() {
        let ratios = [1.1, 1.3, 0.9, 2.0, 1.4, 1.2];
        let mean = SuiteMean::from_ratios(&ratios, 7).unwrap();
        assert!((mean.ratio - geometric_mean(ratios).unwrap()).abs() < 1e-12 && mean.cases == 6);
        assert!(mean.lo.unwrap() < mean.ratio && mean.ratio < mean.hi.unwrap());
        assert_eq!(SuiteMean::from_ratios(&ratios, 7), Some(mean));
    }

    #[test]
    fn four_cases_have_a_mean_and_no_interval() {
        let mean = SuiteMean::from_ratios(&[2.0; 4], 7).unwrap();
        assert_eq!((mean.lo, mean.hi, mean.cases), (None, None, 4));
        assert_eq!(SuiteMean::from_ratios(&[], 7), None);
    }

    #[test]
    fn normal_interval_matches_the_bootstrap() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        // Skewed like speed-ups: most near 1 and a few far above.
        let logs: Vec<f64> = (0..=MAX_BOOTSTRAP_CASES).map(|_| rng.random_range(0.0f64..1.0).powi(6)).collect();
        let (bootstrapped, normal) = (bootstrap(&logs, 4000, 5), normal_interval(&logs));
        let width = normal.1 - normal.0;
        assert!(
            (bootstrapped.0 - normal.0).abs() < 0.05 * width && (bootstrapped.1 - normal.1).abs() < 0.05 * width,
            "{bootstrapped:?} {normal:?}"
        );
        let ratios: Vec<f64> = logs.iter().map(|log| log.exp()).collect();
        assert_eq!(SuiteMean::from_ratios(&ratios, 1).unwrap().lo, Some(normal.0.exp()));
    }

    #[test]
    fn bootstrap_covers_the_true_mean() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut covers = || {
            // The sum of four uniform samples is nearly normal; its mean is zero.
            let mut log = || (0..4).map(|_| rng.random_range(-0.3..0.3)).sum::<f64>();
            let logs: Vec<f64> = (0..20).map(|_| log()).collect();
            let (lo, hi) = bootstrap(&logs, 400, 2);
            lo <= 0.0 && 0.0 <= hi
        };
        let covered = (0..400).filter(|_| covers()).count();
        assert!((352..=388).contains(&covered), "{covered} of 400");
    }
}
