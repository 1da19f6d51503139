//! Recheck of a case that exceeds a peak, interleaved with probes of about the same size.

use super::known::TOLERATED_PERCENT;
use super::limit::{Limit, ProductKind};
use calorimeter_shapes::Shape;

/// Case compared with one probe in interleaved windows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Limit that the probe measures.
    pub what: Limit,
    /// Shape of a matmul probe.
    pub form: Option<Shape>,
    /// Rate of the case divided by the rate of the probe.
    pub middle: f64,
    /// Lower bound of the ratio's interval, if there is one.
    pub lo: Option<f64>,
    /// Rate of the probe in its fastest window.
    pub rate: f64,
}

/// Compares a case with probes.
pub trait Turns {
    /// Measures the case interleaved with all probes of these limits.
    fn look(&mut self, over: &[Limit]) -> Result<Vec<Share>, String>;
    /// Rate of a matmul under continuous load, in TFLOP/s.
    fn sustained(&mut self, kind: ProductKind, form: Shape) -> Result<f64, String>;
    /// True if other processes may use the same memory.
    fn shares_memory(&self) -> bool;
}

/// Result of a recheck.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgment {
    /// Significantly faster than every probe.
    Refused(String),
    /// Plausible; contains the fastest probe, with the lower of its two rates.
    Possible(Share),
    /// Inconclusive, with the reason.
    Unclear(String),
}

/// Repeats rounds until two of them agree.
pub fn judge(mut look: impl FnMut() -> Result<Vec<Share>, String>) -> Judgment {
    const LOOKS: usize = 4;
    let mut looks: Vec<Look> = Vec::new();
    while looks.len() < LOOKS {
        let new = match look().map(|shares| Look::of(&shares)) {
            Ok(Some(new)) => new,
            Ok(None) => return Judgment::Unclear("no interleaved measurement".into()),
            Err(why) => return Judgment::Unclear(why),
        };
        if let Some(known) = looks.iter().find(|known| known.agrees(&new)) {
            return known.and(&new);
        }
        looks.push(new);
    }
    Judgment::Unclear("no two of several interleaved rounds agreed".into())
}

/// Round in which a case was interleaved with all probes.
struct Look {
    /// Fastest probe.
    best: Share,
    /// True if the case was significantly faster than each probe.
    over: bool,
}

impl Look {
    fn of(shares: &[Share]) -> Option<Self> {
        let best = shares.iter().copied().min_by(|a, b| a.middle.total_cmp(&b.middle))?;
        let over = |share: &Share| share.lo.is_some_and(|lo| 100.0 * lo > TOLERATED_PERCENT);
        Some(Self { best, over: shares.iter().all(over) })
    }

    /// True if two rounds agree on the rates of case and probe within a few percent.
    fn agrees(&self, other: &Self) -> bool {
        const MAX_RATIO: f64 = 1.05;
        let near = |a: f64, b: f64| a.max(b) <= MAX_RATIO * a.min(b);
        self.best.what == other.best.what
            && near(self.best.middle, other.best.middle)
            && near(self.best.rate, other.best.rate)
    }

    fn and(&self, other: &Self) -> Judgment {
        if self.over && other.over {
            return Judgment::Refused(faster(&other.best));
        }
        Judgment::Possible(Share { rate: self.best.rate.min(other.best.rate), ..other.best })
    }
}

fn faster(share: &Share) -> String {
    let probe = match share.form {
        _ if share.what == Limit::Memory => "memory copies and reads".to_owned(),
        Some(form) => format!("the fastest of several matmuls with as many operations ({form})"),
        None => "a matmul with as many operations".to_owned(),
    };
    format!("{:.0} % of the interleaved rate of {probe}; work was miscounted, cached or omitted", 100.0 * share.middle)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: f64 = 0.01;

    /// Comparisons of a case with rate 1, given its ratios to the probes.
    fn look(shares: &[f64]) -> Vec<Share> {
        let share = |(side, &middle): (u64, &f64)| Share {
            what: Limit::Products(ProductKind::F32),
            form: Shape::new(side, 64, 64).ok(),
            middle,
            lo: Some(middle - NOISE),
            rate: 1.0 / middle,
        };
        (1..).zip(shares).map(share).collect()
    }

    fn judged(looks: &[Vec<Share>]) -> Judgment {
        let mut looks = looks.iter();
        judge(|| looks.next().cloned().ok_or_else(|| "no round left".into()))
    }

    fn is_refused(looks: &[Vec<Share>]) -> bool {
        matches!(judged(looks), Judgment::Refused(_))
    }

    #[test]
    fn what_is_faster_than_a_square_product_but_not_than_a_wide_one_is_possible() {
        let Judgment::Possible(best) = judged(&[look(&[1.06, 1.0]), look(&[1.07, 1.01])]) else { panic!("rejected") };
        assert_eq!((best.form, best.rate), (look(&[1.06, 1.0])[1].form, 1.0 / 1.01));
        assert!(is_refused(&[look(&[1.06]), look(&[1.07])]));
    }

    #[test]
    fn a_case_that_leaves_out_a_twentieth_of_its_work_is_refused() {
        let done = 0.95;
        let Judgment::Refused(why) = judged(&[look(&[1.0 / done, 1.2 / done]), look(&[1.01 / done, 1.15 / done])])
        else {
            panic!("not rejected")
        };
        let expected =
            "106 % of the interleaved rate of the fastest of several matmuls with as many operations (m1-k64-n64)";
        assert!(why.starts_with(expected), "{why}");
    }

    #[test]
    fn noise_is_no_reason_to_refuse() {
        // The lower bound of one round is within noise.
        assert!(!is_refused(&[look(&[1.05]), look(&[1.02])]));
        // A round with too few windows for an interval.
        let short = Share { lo: None, ..look(&[1.5])[0] };
        assert!(!is_refused(&[vec![short], look(&[1.5])]));
        // Rounds that disagree, until two agree.
        let apart = [look(&[1.1]), look(&[1.3]), look(&[1.6]), look(&[2.0])];
        assert!(
            matches!(judged(&apart), Judgment::Unclear(why) if why.contains("no two of several interleaved rounds agreed"))
        );
        assert!(is_refused(&[look(&[1.1]), look(&[1.6]), look(&[1.61])]));
        // An equal ratio to a probe that was twice as fast at first.
        let fast = look(&[1.1]).into_iter().map(|share| Share { rate: 2.0 * share.rate, ..share }).collect();
        assert!(!is_refused(&[fast, look(&[1.1]), look(&[1.3]), look(&[1.6])]));
    }

    #[test]
    fn a_probe_that_does_not_run_refuses_nothing() {
        assert_eq!(judge(|| Err("no kernel".into())), Judgment::Unclear("no kernel".into()));
        assert!(matches!(judge(|| Ok(Vec::new())), Judgment::Unclear(_)));
    }
}
