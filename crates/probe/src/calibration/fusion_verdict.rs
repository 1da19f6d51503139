//! Verdict on a fusion, from the interval of its speed-up and the number of kernels.

use serde::{Deserialize, Serialize};

/// Verdict on a fused pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FusionVerdict {
    /// At least 1.5 times as fast.
    Strong,
    /// At least 1.1 times as fast.
    Moderate,
    /// No relevant difference.
    Neutral,
    /// Slower than 0.95 times.
    Slower,
    /// The interval is compatible with several verdicts.
    Inconclusive,
    /// No fewer kernels than unfused, so fusion does not explain the time.
    NotFused,
    /// Not available on this device.
    Unsupported,
    /// The case failed.
    Failed,
}

const STRONG_SPEEDUP: f64 = 1.5;
const MODERATE_SPEEDUP: f64 = 1.1;
const SLOWER_SPEEDUP: f64 = 0.95;

impl FusionVerdict {
    /// Judges the interval of a speed-up, and the kernel counts unfused and fused if both are known.
    pub fn from_interval(interval: Option<(f64, f64)>, launches: Option<(f64, f64)>) -> Self {
        match (interval, launches) {
            (_, Some((unfused, fused))) if fused >= unfused => Self::NotFused,
            (Some((lo, _)), _) if lo >= STRONG_SPEEDUP => Self::Strong,
            (Some((lo, _)), _) if lo >= MODERATE_SPEEDUP => Self::Moderate,
            (Some((_, hi)), _) if hi < SLOWER_SPEEDUP => Self::Slower,
            (Some((lo, hi)), _) if lo >= SLOWER_SPEEDUP && hi <= MODERATE_SPEEDUP => Self::Neutral,
            _ => Self::Inconclusive,
        }
    }

    /// Name in profiles.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Strong => "strong",
            Self::Moderate => "moderate",
            Self::Neutral => "neutral",
            Self::Slower => "slower",
            Self::Inconclusive => "inconclusive",
            Self::NotFused => "not-fused",
            Self::Unsupported => "unsupported",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use FusionVerdict::*;

    #[test]
    fn intervals_determine_the_verdict() {
        for (interval, verdict) in [
            ((1.5, 1.9), Strong),
            ((1.49, 1.9), Moderate),
            ((1.1, 1.2), Moderate),
            ((1.09, 2.5), Inconclusive),
            ((0.95, 1.1), Neutral),
            ((0.99, 1.01), Neutral),
            ((0.94, 1.0), Inconclusive),
            ((0.6, 0.94), Slower),
        ] {
            assert_eq!(FusionVerdict::from_interval(Some(interval), None), verdict, "{interval:?}");
            assert_eq!(FusionVerdict::from_interval(Some(interval), Some((3.0, 1.0))), verdict, "{interval:?}");
        }
        assert_eq!(FusionVerdict::from_interval(None, None), Inconclusive);
    }

    #[test]
    fn equal_launch_counts_mean_not_fused() {
        for (unfused, fused) in [(3.0, 3.0), (1.0, 2.0)] {
            assert_eq!(FusionVerdict::from_interval(Some((2.0, 3.0)), Some((unfused, fused))), NotFused);
        }
    }

    #[test]
    fn serialized_names_match_as_str() {
        for verdict in [Strong, Moderate, Neutral, Slower, Inconclusive, NotFused, Unsupported, Failed] {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
        }
    }
}
