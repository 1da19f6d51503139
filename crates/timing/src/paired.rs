//! Speed-ups from paired rounds: a slow drift that both arms share cancels.

use crate::Interval;

/// What a speed-up's interval allows one to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies above 1 by more than the margin.
    Faster,
    /// The whole interval lies below 1 by more than the margin.
    Slower,
    /// The whole interval lies within the margin of 1.
    Same,
    /// None of these: more rounds, or a quieter machine, would be needed.
    Inconclusive,
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Same => "SAME",
            Self::Inconclusive => "INCONCLUSIVE",
        })
    }
}

/// A speed-up with its 95 % interval: above 1 means faster than the baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Baseline time over candidate time, the median over rounds.
    pub ratio: f64,
    /// Lower end of the interval, absent below six rounds.
    pub lo: Option<f64>,
    /// Upper end of the interval.
    pub hi: Option<f64>,
    /// What may be said.
    pub verdict: Verdict,
}

impl Comparison {
    /// Compares samples taken in the same rounds.
    pub fn of(baseline: &[f64], candidate: &[f64], margin: f64) -> Option<Self> {
        let logs: Vec<f64> =
            baseline.iter().zip(candidate).map(|(b, c)| (b / c).ln()).filter(|d| d.is_finite()).collect();
        let Interval { median, bounds } = Interval::of(&logs)?;
        let (lo, hi) = (bounds.map(|b| b.0.exp()), bounds.map(|b| b.1.exp()));
        Some(Self { ratio: median.exp(), lo, hi, verdict: verdict(lo, hi, margin) })
    }

    /// Half the interval's width relative to the ratio.
    pub fn relative_half_width(&self) -> Option<f64> {
        Some((self.hi? - self.lo?) / 2.0 / self.ratio)
    }
}

fn verdict(lo: Option<f64>, hi: Option<f64>, margin: f64) -> Verdict {
    let (Some(lo), Some(hi)) = (lo, hi) else { return Verdict::Inconclusive };
    if lo > 1.0 + margin {
        Verdict::Faster
    } else if hi < 1.0 / (1.0 + margin) {
        Verdict::Slower
    } else if lo >= 1.0 / (1.0 + margin) && hi <= 1.0 + margin {
        Verdict::Same
    } else {
        Verdict::Inconclusive
    }
}

/// The geometric mean of positive ratios; `None` when there are none.
pub fn geometric_mean(ratios: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (sum, count) = ratios.into_iter().fold((0.0, 0u32), |(sum, count), ratio| (sum + ratio.ln(), count + 1));
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_follow_the_interval_and_the_margin() {
        for (lo, hi, expected) in [
            (1.03, 1.20, Verdict::Faster),
            (1.01, 1.20, Verdict::Inconclusive),
            (0.99, 1.01, Verdict::Same),
            (0.981, 1.02, Verdict::Same),
            (0.70, 0.97, Verdict::Slower),
            (0.90, 1.10, Verdict::Inconclusive),
        ] {
            assert_eq!(verdict(Some(lo), Some(hi), 0.02), expected, "{lo}..{hi}");
        }
        assert_eq!(verdict(None, None, 0.02), Verdict::Inconclusive);
    }

    #[test]
    fn a_drift_shared_by_both_arms_cancels() {
        let baseline: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i)).collect();
        let candidate: Vec<f64> = baseline.iter().map(|t| t / 1.5).collect();
        let comparison = Comparison::of(&baseline, &candidate, 0.02).unwrap();
        assert!((comparison.ratio - 1.5).abs() < 1e-12 && comparison.hi.unwrap() - comparison.lo.unwrap() < 1e-12);
        assert_eq!(comparison.verdict, Verdict::Faster);
    }

    #[test]
    fn the_geometric_mean_of_a_ratio_and_its_inverse_is_one() {
        assert!((geometric_mean([2.0, 0.5]).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(geometric_mean([]), None);
    }
}
