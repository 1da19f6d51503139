//! Digest of an output, from downloaded values or from the device.

use crate::{Look, Output, Reference, Seen, Spoilt, Sums};
use rayon::prelude::*;
use std::borrow::Cow;

/// Output that can be reduced to a digest.
pub trait Evidence {
    /// Returns the digest that the comparison with this reference requires.
    fn seen(&self, reference: &Reference) -> Cow<'_, Seen>;
}

impl Output {
    /// Computes the digest for a query.
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

/// Finds the first non-finite value and counts all.
pub(super) fn first_spoilt(values: &[f32]) -> Option<Spoilt> {
    // A fold over chunks vectorizes; a test per element takes a hundred times as long.
    const SHARE: usize = 1 << 14;
    let is_spoilt = |values: &[f32]| values.iter().fold(false, |found, value| found | !value.is_finite());
    let share = values.par_chunks(SHARE).position_first(is_spoilt)? * SHARE;
    let at = share + values[share..].iter().position(|value| !value.is_finite())?;
    let count = values.iter().filter(|value| !value.is_finite()).count();
    Some(Spoilt { at, value: values[at], count })
}
