//! Mean over independent replicates, such as processes.

use crate::student;
use serde::Serialize;

/// Geometric mean of values found by independent replicates, with a 95 % interval for the mean of the next replicate:
/// Student's t interval of the logarithms. Each value already contains the scatter within its replicate, so the
/// interval covers both levels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReplicateMean {
    /// Geometric mean.
    pub mean: f64,
    /// Lower end of the 95 % interval.
    pub lo: f64,
    /// Upper end of the 95 % interval.
    pub hi: f64,
}

impl ReplicateMean {
    /// Computes the mean; `None` for fewer than two values or values without a logarithm.
    pub fn from_values(found: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = found.iter().map(|value| value.ln()).collect();
        let n = logs.len();
        if n < 2 || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let mean = logs.iter().sum::<f64>() / n as f64;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1) as f64;
        let half = student::critical_value(n - 1) * (variance / n as f64).sqrt();
        Some(Self { mean: mean.exp(), lo: (mean - half).exp(), hi: (mean + half).exp() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::normal;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn equal_values_have_zero_width() {
        let across = ReplicateMean::from_values(&[7.0, 7.0, 7.0]).unwrap();
        assert!((across.mean - 7.0).abs() < 1e-12 && across.hi - across.lo < 1e-9, "{across:?}");
        assert_eq!((ReplicateMean::from_values(&[7.0]), ReplicateMean::from_values(&[7.0, 0.0])), (None, None));
    }

    #[test]
    fn interval_of_five_covers_95_percent() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let mut run =
            || ReplicateMean::from_values(&[(); 5].map(|()| 1000.0 * (0.01 * normal(&mut rng)).exp())).unwrap();
        let held = (0..4000).map(|_| run()).filter(|across| across.lo <= 1000.0 && 1000.0 <= across.hi).count();
        assert!((3740..=3860).contains(&held), "{held} of 4000");
    }
}
