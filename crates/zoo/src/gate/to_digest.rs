//! Digest of an output, from downloaded values or from the device.

use crate::{NonFinite, Output, OutputDigest, OutputQuery, Reference, SignedSums};
use rayon::prelude::*;
use std::borrow::Cow;

/// Output that can be reduced to a digest.
pub trait ToDigest {
    /// Returns the digest that the comparison with this reference requires.
    fn to_digest(&self, reference: &Reference) -> Cow<'_, OutputDigest>;
}

impl Output {
    /// Computes the digest for a query.
    pub(crate) fn digest(&self, &OutputQuery { sample, sums }: &OutputQuery<'_>) -> OutputDigest {
        let (size, count) = ([self.rows, self.cols], self.values.len());
        let spoilt = find_non_finite(&self.values);
        let whole = count == self.rows * self.cols && spoilt.is_none() && sample.is_within(size);
        let sampled = if whole { self.sampled(sample) } else { Vec::new() };
        let sums = (whole && sums).then(|| SignedSums::new(&self.values, self.cols));
        OutputDigest { size, count, non_finite: spoilt, sampled, sums }
    }
}

impl ToDigest for Output {
    fn to_digest(&self, reference: &Reference) -> Cow<'_, OutputDigest> {
        Cow::Owned(self.digest(&reference.query()))
    }
}

impl ToDigest for OutputDigest {
    fn to_digest(&self, _: &Reference) -> Cow<'_, OutputDigest> {
        Cow::Borrowed(self)
    }
}

/// Finds the first non-finite value and counts all.
pub(super) fn find_non_finite(values: &[f32]) -> Option<NonFinite> {
    // A fold over chunks vectorizes; a test per element takes a hundred times as long.
    const SHARE: usize = 1 << 14;
    let is_spoilt = |values: &[f32]| values.iter().fold(false, |found, value| found | !value.is_finite());
    let share = values.par_chunks(SHARE).position_first(is_spoilt)? * SHARE;
    let at = share + values[share..].iter().position(|value| !value.is_finite())?;
    let count = values.iter().filter(|value| !value.is_finite()).count();
    Some(NonFinite { index: at, value: values[at], count })
}
