//! What is said of a case that is faster than a peak: it is measured again, in turns with probes as large as itself.

use super::known::TOLERATED_PERCENT;
use super::limit::{Limit, ProductKind};
use calorimeter_shapes::Shape;

/// How a case did in turns with one form of a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// What the probe is the measure of.
    pub what: Limit,
    /// The sizes of a product.
    pub form: Option<Shape>,
    /// The case's rate over the probe's.
    pub middle: f64,
    /// The lower end of its interval, where there is one.
    pub lo: Option<f64>,
    /// What the probe reached in its fastest window.
    pub rate: f64,
}

/// What a case is measured in turns with.
pub trait Turns {
    /// The case beside every form of these probes at once.
    fn look(&mut self, over: &[Limit]) -> Result<Vec<Share>, String>;
    /// A product under continuous load, in 10¹² operations per second.
    fn sustained(&mut self, kind: ProductKind, form: Shape) -> Result<f64, String>;
    /// Whether others use the memory meanwhile.
    fn shares_memory(&self) -> bool;
}

/// What several looks come to.
#[derive(Debug, Clone, PartialEq)]
pub enum Judgment {
    /// It is faster than every form, beyond doubt.
    Refused(String),
    /// It may well be right; this is the fastest form, with the lower of the rates that it was seen to reach.
    Possible(Share),
    /// They do not tell, and why.
    Unclear(String),
}

/// Looks until two agree.
pub fn judge(mut look: impl FnMut() -> Result<Vec<Share>, String>) -> Judgment {
    const LOOKS: usize = 4;
    let mut looks: Vec<Look> = Vec::new();
    while looks.len() < LOOKS {
        let new = match look().map(|shares| Look::of(&shares)) {
            Ok(Some(new)) => new,
            Ok(None) => return Judgment::Unclear("nothing was measured in turns with it".into()),
            Err(why) => return Judgment::Unclear(why),
        };
        if let Some(known) = looks.iter().find(|known| known.agrees(&new)) {
            return known.and(&new);
        }
        looks.push(new);
    }
    Judgment::Unclear("in turns with probes it was measured several times, and no two times agreed".into())
}

/// A case in turns with every form of its probes at once.
struct Look {
    /// The form that was the fastest.
    best: Share,
    /// Whether the case was faster than each form, beyond the noise of the look.
    over: bool,
}

impl Look {
    fn of(shares: &[Share]) -> Option<Self> {
        let best = shares.iter().copied().min_by(|a, b| a.middle.total_cmp(&b.middle))?;
        let over = |share: &Share| share.lo.is_some_and(|lo| 100.0 * lo > TOLERATED_PERCENT);
        Some(Self { best, over: shares.iter().all(over) })
    }

    /// Whether another look found the same, the case and the probe within a few per cent.
    fn agrees(&self, other: &Self) -> bool {
        const WITHIN: f64 = 1.05;
        let near = |a: f64, b: f64| a.max(b) <= WITHIN * a.min(b);
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
        _ if share.what == Limit::Memory => "copies and reads of memory".to_owned(),
        Some(form) => format!("the fastest of several products of as many operations ({form})"),
        None => "a product of as many operations".to_owned(),
    };
    format!(
        "{:.0} % of what {probe} reached in turns with it; work was miscounted, cached or left out",
        100.0 * share.middle
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: f64 = 0.01;

    /// Forms beside which a case of the rate 1 had these shares.
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
        judge(|| looks.next().cloned().ok_or_else(|| "no look was left".into()))
    }

    fn is_refused(looks: &[Vec<Share>]) -> bool {
        matches!(judged(looks), Judgment::Refused(_))
    }

    #[test]
    fn what_is_faster_than_a_square_product_but_not_than_a_wide_one_is_possible() {
        let Judgment::Possible(best) = judged(&[look(&[1.06, 1.0]), look(&[1.07, 1.01])]) else {
            panic!("it was refused")
        };
        assert_eq!((best.form, best.rate), (look(&[1.06, 1.0])[1].form, 1.0 / 1.01));
        assert!(is_refused(&[look(&[1.06]), look(&[1.07])]));
    }

    #[test]
    fn a_case_that_leaves_out_a_twentieth_of_its_work_is_refused() {
        let done = 0.95;
        let Judgment::Refused(why) = judged(&[look(&[1.0 / done, 1.2 / done]), look(&[1.01 / done, 1.15 / done])])
        else {
            panic!("it was not refused")
        };
        let expected =
            "106 % of what the fastest of several products of as many operations (m1-k64-n64) reached in turns";
        assert!(why.starts_with(expected), "{why}");
    }

    #[test]
    fn noise_is_no_reason_to_refuse() {
        // The lower end of one look is within what noise alone does.
        assert!(!is_refused(&[look(&[1.05]), look(&[1.02])]));
        // A look of so few windows that it has no interval.
        let short = Share { lo: None, ..look(&[1.5])[0] };
        assert!(!is_refused(&[vec![short], look(&[1.5])]));
        // Looks that do not agree, until two do.
        let apart = [look(&[1.1]), look(&[1.3]), look(&[1.6]), look(&[2.0])];
        assert!(matches!(judged(&apart), Judgment::Unclear(why) if why.contains("no two times agreed")));
        assert!(is_refused(&[look(&[1.1]), look(&[1.6]), look(&[1.61])]));
        // The same share of a probe that was twice as fast at first.
        let fast = look(&[1.1]).into_iter().map(|share| Share { rate: 2.0 * share.rate, ..share }).collect();
        assert!(!is_refused(&[fast, look(&[1.1]), look(&[1.3]), look(&[1.6])]));
    }

    #[test]
    fn a_probe_that_does_not_run_refuses_nothing() {
        assert_eq!(judge(|| Err("no kernel".into())), Judgment::Unclear("no kernel".into()));
        assert!(matches!(judge(|| Ok(Vec::new())), Judgment::Unclear(_)));
    }
}
