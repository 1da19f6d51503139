//! Speed-ups from paired rounds, in which drift shared by both arms cancels.

use crate::{Interval, TimeEstimate, Verdict, median};
use serde::Serialize;

/// Speed-up with its 95 % interval: above 1 is faster than the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comparison {
    /// Baseline time divided by candidate time, the median over rounds.
    pub ratio: f64,
    /// Lower end of the interval, absent below six rounds.
    pub lo: Option<f64>,
    /// Upper end of the interval.
    pub hi: Option<f64>,
    /// False if the ratio itself drifts too slowly for the number of rounds: the interval then spans at least the
    /// medians of ten successive batches of rounds.
    pub sound: bool,
    /// Conclusion from the interval and the margin.
    pub verdict: Verdict,
    /// Estimated number of samples, in [`measure`](crate::measure) of rounds, that would decide an unclear verdict.
    pub rounds_needed: Option<u32>,
}

impl Comparison {
    /// Compares samples of the same rounds, in order.
    pub fn paired(baseline: &[f64], candidate: &[f64], margin: f64) -> Option<Self> {
        let count = baseline.len().min(candidate.len());
        let pairs = thin_to(baseline, count).into_iter().zip(thin_to(candidate, count));
        let logs: Vec<f64> = pairs.map(|(b, c)| (b / c).ln()).filter(|d| d.is_finite()).collect();
        let interval = Interval::from_samples(&logs)?;
        let (lo, hi) = (interval.bounds.map(|b| b.0.exp()), interval.bounds.map(|b| b.1.exp()));
        let verdict = Verdict::from_interval(lo, hi, margin);
        let rounds_needed = match verdict {
            Verdict::Unclear => rounds_needed(&interval, logs.len(), margin),
            Verdict::Faster | Verdict::Slower | Verdict::Same => None,
        };
        Some(Self { ratio: interval.median.exp(), lo, hi, sound: interval.sound, verdict, rounds_needed })
    }

    /// Compares two unpaired times, such as isolated times at different clocks.
    pub fn unpaired(baseline: &TimeEstimate, candidate: &TimeEstimate, margin: f64) -> Option<Self> {
        let ratio = baseline.median / candidate.median;
        let (base, other) = (baseline.lo.zip(baseline.hi)?, candidate.lo.zip(candidate.hi)?);
        // Independent errors: the logarithmic distances of both times' ends are added in quadrature.
        let below = (baseline.median / base.0).ln().hypot((other.1 / candidate.median).ln());
        let above = (base.1 / baseline.median).ln().hypot((candidate.median / other.0).ln());
        let (lo, hi) = (Some(ratio * (-below).exp()), Some(ratio * above.exp()));
        let verdict = Verdict::from_interval(lo, hi, margin);
        let sound = baseline.sound && candidate.sound;
        ratio.is_finite().then_some(Self { ratio, lo, hi, sound, verdict, rounds_needed: None })
    }

    /// Widens the interval at both ends by a share of the ratio: the reading errors of both clocks.
    pub fn widened(self, share: f64, margin: f64) -> Self {
        let (lo, hi) = (self.lo.map(|lo| lo / (1.0 + share)), self.hi.map(|hi| hi * (1.0 + share)));
        Self { lo, hi, verdict: Verdict::from_interval(lo, hi, margin), ..self }
    }

    /// Half-width of the interval relative to the ratio.
    pub fn relative_half_width(&self) -> Option<f64> {
        // Half-width of the logarithm, which is equal for relevant widths.
        Some((self.hi? / self.lo?).ln() / 2.0)
    }
}

/// Reduces samples to `count`: if the other clock needs several rounds per sample, to medians of as many rounds.
fn thin_to(samples: &[f64], count: usize) -> Vec<f64> {
    if samples.len() == count || count == 0 {
        return samples.to_vec();
    }
    samples.chunks(samples.len() / count).take(count).filter_map(median).collect()
}

/// Estimates the rounds after which the interval, whose width falls with their square root, excludes the edge of the
/// margin.
fn rounds_needed(interval: &Interval, rounds: usize, margin: f64) -> Option<u32> {
    let (lo, hi) = interval.bounds?;
    let to_edge = (interval.median.abs() - margin.ln_1p()).abs();
    let needed = rounds as f64 * ((hi - lo) / 2.0 / to_edge).powi(2);
    // A ratio exactly on the edge is never decided.
    (needed < f64::from(u32::MAX)).then(|| (needed.ceil() as u32).max(rounds as u32 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_drift_cancels() {
        let baseline: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i)).collect();
        let candidate: Vec<f64> = baseline.iter().map(|t| t / 1.5).collect();
        let comparison = Comparison::paired(&baseline, &candidate, 0.02).unwrap();
        assert!((comparison.ratio - 1.5).abs() < 1e-12 && comparison.hi.unwrap() - comparison.lo.unwrap() < 1e-12);
        assert_eq!(comparison.verdict, Verdict::Faster);
    }

    #[test]
    fn unclear_verdict_estimates_required_rounds() {
        // 1 % above the margin with a half-width of about 2 %: four times the rounds halve it.
        let scattered = |rounds: u32, center: f64| {
            let offsets = (0..rounds).map(|i| (f64::from(i * 7 % 20) - 9.5) / 9.5);
            let candidate: Vec<f64> = offsets.map(|o| (-(center + 0.06 * o)).exp()).collect();
            Comparison::paired(&vec![1.0; candidate.len()], &candidate, 0.02).unwrap()
        };
        let few = scattered(40, 0.03);
        assert_eq!(few.verdict, Verdict::Unclear);
        let needed = few.rounds_needed.unwrap();
        assert!((80..400).contains(&needed), "{few:?}");
        let enough = scattered(needed.next_multiple_of(20), 0.03);
        assert_eq!((enough.verdict, enough.rounds_needed), (Verdict::Faster, None));
        assert_eq!(Comparison::paired(&[1.0; 3], &[1.0; 3], 0.02).unwrap().rounds_needed, None);
    }

    #[test]
    fn samples_of_four_rounds_are_paired() {
        let baseline: Vec<f64> = (0..83).map(|round| 100.0 * 1.01f64.powi(round / 4)).collect();
        let candidate: Vec<f64> = (0..20).map(|cycle| 50.0 * 1.01f64.powi(cycle)).collect();
        let comparison = Comparison::paired(&baseline, &candidate, 0.02).unwrap();
        assert!((comparison.lo.unwrap() - 2.0).abs() < 1e-9 && (comparison.hi.unwrap() - 2.0).abs() < 1e-9);
        assert_eq!(Comparison::paired(&baseline, &[], 0.02), None);
    }
}
