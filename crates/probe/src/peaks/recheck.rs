//! Recheck of a case that exceeds a peak, interleaved with probes of about the same size.

use super::device_peaks::TOLERATED_PERCENT;
use super::limit::{Limit, MatmulPrecision};
use calorimeter_shapes::Shape;

/// Case compared with one probe in interleaved windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ProbeComparison {
    /// Limit that the probe measures.
    pub limit: Limit,
    /// Shape of a matmul probe.
    pub shape: Option<Shape>,
    /// Rate of the case divided by the rate of the probe.
    pub ratio: f64,
    /// Lower bound of the ratio's interval, if there is one.
    pub lo: Option<f64>,
    /// Rate of the probe in its fastest window.
    pub rate: f64,
}

/// Compares a case with probes.
pub(super) trait ProbeComparer {
    /// Measures the case interleaved with all probes of these limits.
    fn compare(&mut self, over: &[Limit]) -> Result<Vec<ProbeComparison>, String>;
    /// Rate of a matmul under continuous load, in TFLOP/s.
    fn sustained_rate(&mut self, kind: MatmulPrecision, form: Shape) -> Result<f64, String>;
    /// True if other processes may use the same memory.
    fn shares_memory(&self) -> bool;
}

/// Result of a recheck.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RecheckResult {
    /// Significantly faster than every probe.
    Rejected(String),
    /// Plausible; contains the fastest probe, with the lower of its two rates.
    Plausible(ProbeComparison),
    /// Inconclusive, with the reason.
    Unclear(String),
}

/// Rate relative to the fastest probe from which rounds need not agree.
const IMPOSSIBLE_RATIO: f64 = 2.0;

/// Repeats rounds until two of them agree. A case that is far faster than the probes in every round is rejected even if
/// the rounds differ, as they do on a busy machine.
pub(super) fn judge(mut look: impl FnMut() -> Result<Vec<ProbeComparison>, String>) -> RecheckResult {
    const LOOKS: usize = 4;
    let mut looks: Vec<ComparisonRound> = Vec::new();
    while looks.len() < LOOKS {
        let new = match look().map(|shares| ComparisonRound::from_comparisons(&shares)) {
            Ok(Some(new)) => new,
            Ok(None) => return RecheckResult::Unclear("no interleaved measurement".into()),
            Err(why) => return RecheckResult::Unclear(why),
        };
        if let Some(known) = looks.iter().find(|known| known.agrees(&new)) {
            return known.conclude_with(&new);
        }
        looks.push(new);
    }
    let lowest = looks.iter().min_by(|a, b| a.closest.ratio.total_cmp(&b.closest.ratio));
    if let Some(lowest) = lowest.filter(|lowest| lowest.closest.ratio > IMPOSSIBLE_RATIO) {
        return RecheckResult::Rejected(rejection_message(&lowest.closest));
    }
    RecheckResult::Unclear("no two of several interleaved rounds agreed".into())
}

/// Round in which a case was interleaved with all probes.
struct ComparisonRound {
    /// Fastest probe.
    closest: ProbeComparison,
    /// True if the case was significantly faster than each probe.
    all_exceeded: bool,
}

impl ComparisonRound {
    fn from_comparisons(shares: &[ProbeComparison]) -> Option<Self> {
        let best = shares.iter().copied().min_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        let over = |share: &ProbeComparison| share.lo.is_some_and(|lo| 100.0 * lo > TOLERATED_PERCENT);
        Some(Self { closest: best, all_exceeded: shares.iter().all(over) })
    }

    /// True if two rounds agree on the rates of case and probe within a few percent.
    fn agrees(&self, other: &Self) -> bool {
        const MAX_RATIO: f64 = 1.05;
        let near = |a: f64, b: f64| a.max(b) <= MAX_RATIO * a.min(b);
        self.closest.limit == other.closest.limit
            && near(self.closest.ratio, other.closest.ratio)
            && near(self.closest.rate, other.closest.rate)
    }

    fn conclude_with(&self, other: &Self) -> RecheckResult {
        if self.all_exceeded && other.all_exceeded {
            return RecheckResult::Rejected(rejection_message(&other.closest));
        }
        RecheckResult::Plausible(ProbeComparison { rate: self.closest.rate.min(other.closest.rate), ..other.closest })
    }
}

fn rejection_message(share: &ProbeComparison) -> String {
    let probe = match share.shape {
        _ if share.limit == Limit::Memory => "memory copies and reads".to_owned(),
        Some(form) => format!("the fastest of several matmuls with as many operations ({form})"),
        None => "a matmul with as many operations".to_owned(),
    };
    format!("{:.0} % of the interleaved rate of {probe}; work was miscounted, cached or omitted", 100.0 * share.ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: f64 = 0.01;

    /// Comparisons of a case with rate 1, given its ratios to the probes.
    fn round(shares: &[f64]) -> Vec<ProbeComparison> {
        let share = |(side, &middle): (u64, &f64)| ProbeComparison {
            limit: Limit::Matmul(MatmulPrecision::F32),
            shape: Shape::new(side, 64, 64).ok(),
            ratio: middle,
            lo: Some(middle - NOISE),
            rate: 1.0 / middle,
        };
        (1..).zip(shares).map(share).collect()
    }

    fn judged(looks: &[Vec<ProbeComparison>]) -> RecheckResult {
        let mut looks = looks.iter();
        judge(|| looks.next().cloned().ok_or_else(|| "no round left".into()))
    }

    fn is_rejected(looks: &[Vec<ProbeComparison>]) -> bool {
        matches!(judged(looks), RecheckResult::Rejected(_))
    }

    #[test]
    fn cases_slower_than_one_shape_are_plausible() {
        let RecheckResult::Plausible(best) = judged(&[round(&[1.06, 1.0]), round(&[1.07, 1.01])]) else {
            panic!("rejected")
        };
        assert_eq!((best.shape, best.rate), (round(&[1.06, 1.0])[1].shape, 1.0 / 1.01));
        assert!(is_rejected(&[round(&[1.06]), round(&[1.07])]));
    }

    #[test]
    fn skipping_five_percent_of_work_is_rejected() {
        let done = 0.95;
        let RecheckResult::Rejected(why) =
            judged(&[round(&[1.0 / done, 1.2 / done]), round(&[1.01 / done, 1.15 / done])])
        else {
            panic!("not rejected")
        };
        let expected =
            "106 % of the interleaved rate of the fastest of several matmuls with as many operations (m1-k64-n64)";
        assert!(why.starts_with(expected), "{why}");
    }

    #[test]
    fn noise_alone_is_not_rejected() {
        // The lower bound of one round is within noise.
        assert!(!is_rejected(&[round(&[1.05]), round(&[1.02])]));
        // A round with too few windows for an interval.
        let short = ProbeComparison { lo: None, ..round(&[1.5])[0] };
        assert!(!is_rejected(&[vec![short], round(&[1.5])]));
        // Rounds that disagree, until two agree.
        let apart = [round(&[1.1]), round(&[1.3]), round(&[1.6]), round(&[2.0])];
        assert!(
            matches!(judged(&apart), RecheckResult::Unclear(why) if why.contains("no two of several interleaved rounds agreed"))
        );
        assert!(is_rejected(&[round(&[1.1]), round(&[1.6]), round(&[1.61])]));
        // Rounds that disagree, all of them far above the peak.
        assert!(is_rejected(&[round(&[9.0]), round(&[7.0]), round(&[2.1]), round(&[4.0])]));
        // An equal ratio to a probe that was twice as fast at first.
        let fast = round(&[1.1]).into_iter().map(|share| ProbeComparison { rate: 2.0 * share.rate, ..share }).collect();
        assert!(!is_rejected(&[fast, round(&[1.1]), round(&[1.3]), round(&[1.6])]));
    }

    #[test]
    fn failing_probes_reject_nothing() {
        assert_eq!(judge(|| Err("no kernel".into())), RecheckResult::Unclear("no kernel".into()));
        assert!(matches!(judge(|| Ok(Vec::new())), RecheckResult::Unclear(_)));
    }
}
