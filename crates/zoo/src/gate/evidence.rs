//! What an output is judged by: all of it, or what was seen of it.

use crate::{Look, Output, Reference, Seen, Spoilt, Sums};
use rayon::prelude::*;
use std::borrow::Cow;

/// What an output can be judged by.
pub trait Evidence {
    /// What the gate looks at beside this reference.
    fn seen(&self, reference: &Reference) -> Cow<'_, Seen>;
}

impl Output {
    /// What is seen of it.
    pub(crate) fn looked_at(&self, &Look { sample, sums }: &Look<'_>) -> Seen {
        let (size, count) = ([self.rows, self.cols], self.values.len());
        let spoilt = first_spoilt(&self.values);
        let whole = count == self.rows * self.cols && spoilt.is_none() && sample.is_within(size);
        let sampled = if whole { self.sampled(sample) } else { Vec::new() };
        let sums = (whole && sums).then(|| Sums::of(&self.values, self.cols));
        Seen { size, count, spoilt, sampled, sums }
    }
}

impl Evidence for Output {
    fn seen(&self, reference: &Reference) -> Cow<'_, Seen> {
        Cow::Owned(self.looked_at(&reference.look()))
    }
}

impl Evidence for Seen {
    fn seen(&self, _: &Reference) -> Cow<'_, Seen> {
        Cow::Borrowed(self)
    }
}

/// The first of some values that is infinite or no number, and how many are.
pub(super) fn first_spoilt(values: &[f32]) -> Option<Spoilt> {
    // Asked of each by itself, it takes a hundred times as long.
    const SHARE: usize = 1 << 14;
    let is_spoilt = |values: &[f32]| values.iter().fold(false, |found, value| found | !value.is_finite());
    let share = values.par_chunks(SHARE).position_first(is_spoilt)? * SHARE;
    let at = share + values[share..].iter().position(|value| !value.is_finite())?;
    let count = values.iter().filter(|value| !value.is_finite()).count();
    Some(Spoilt { at, value: values[at], count })
}
