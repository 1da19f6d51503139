//! Limits of the errors of single elements, without a statistical model.

use super::{Mismatch, ToDigest, check_digest};
use crate::{Output, OutputDigest, Reference};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Added to the magnitude of a reference before a division.
const EPSILON: f64 = 1e-8;

/// Limits of elementwise errors. An element is wrong if its absolute and its relative error both exceed their limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ElementTolerance {
    /// Maximum absolute error.
    pub absolute: f64,
    /// Maximum error relative to the reference.
    pub relative: f64,
    /// Minimum share of correct elements.
    pub matched_share: f64,
}

/// Largest errors of the elements of an output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LargestErrors {
    /// Largest absolute error.
    pub absolute: f64,
    /// Largest error relative to the reference.
    pub relative: f64,
}

/// Absolute error, and error relative to the reference.
fn errors(got: f64, expected: f64) -> (f64, f64) {
    let absolute = (got - expected).abs();
    (absolute, absolute / (expected.abs() + EPSILON))
}

impl LargestErrors {
    /// Errors of an output; `None` if a value is not finite, or if the sizes differ.
    pub fn of(output: &Output, reference: &Reference) -> Option<Self> {
        if output.values.len() != reference.values.len() || !output.values.par_iter().all(|value| value.is_finite()) {
            return None;
        }
        let each = output.values.par_iter().zip(&reference.values).map(|(&got, &expected)| {
            let (absolute, relative) = errors(got.into(), expected);
            Self { absolute, relative }
        });
        Some(each.reduce(|| Self { absolute: 0.0, relative: 0.0 }, Self::max))
    }

    /// Larger of both errors.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { absolute: self.absolute.max(other.absolute), relative: self.relative.max(other.relative) }
    }
}

/// Compares an output with its reference element by element; returns the relative error.
pub fn judge_elements(
    output: &impl ToDigest,
    reference: &Reference,
    tolerance: &ElementTolerance,
) -> Result<f64, Mismatch> {
    judge_digest_elements(&output.to_digest(reference), reference, tolerance)
}

fn judge_digest_elements(
    seen: &OutputDigest,
    reference: &Reference,
    tolerance: &ElementTolerance,
) -> Result<f64, Mismatch> {
    check_digest(seen, reference)?;
    let pairs = || seen.sampled.par_iter().zip(&reference.values);
    // An error that is not a number is not within the limits.
    let is_correct = |(&got, &expected): (&f64, &f64)| {
        let (absolute, relative) = errors(got, expected);
        absolute <= tolerance.absolute || relative <= tolerance.relative
    };
    let is_wrong = |pair: (&f64, &f64)| !is_correct(pair);
    let count = pairs().filter(|&pair| is_wrong(pair)).count();
    let compared = reference.values.len();
    let matched_share = 1.0 - count as f64 / compared.max(1) as f64;
    if matched_share < tolerance.matched_share
        && let Some(first) = pairs().position_first(is_wrong)
    {
        let (row, col) = reference.sample.position(first);
        let (got, expected) = (seen.sampled[first], reference.values[first]);
        return Err(Mismatch::Element { row, col, got, expected, count, compared });
    }
    let noise: f64 = pairs().map(|(got, expected)| (got - expected).powi(2)).sum();
    let power: f64 = reference.values.par_iter().map(|value| value.powi(2)).sum();
    Ok(if noise == 0.0 { 0.0 } else { (noise / power).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutputSample;

    fn judge(got: &[f32], expected: &[f64], matched_share: f64) -> Result<f64, Mismatch> {
        let sample = OutputSample { rows: vec![0], cols: (0..expected.len()).collect() };
        let reference = Reference { sample, values: expected.to_vec(), projection: None };
        let output = Output { rows: 1, cols: got.len(), values: got.to_vec() };
        let tolerance = ElementTolerance { absolute: 0.01, relative: 0.01, matched_share };
        judge_elements(&output, &reference, &tolerance)
    }

    #[test]
    fn element_must_exceed_both_limits() {
        // Large relative errors of small values, and large absolute errors of large values, are accepted.
        assert!(judge(&[0.009, 1005.0], &[0.0, 1000.0], 1.0).is_ok());
        let wrong = judge(&[0.5, 1005.0, 1.5], &[0.5, 1000.0, 1.0], 1.0);
        assert!(matches!(wrong, Err(Mismatch::Element { col: 2, count: 1, compared: 3, .. })), "{wrong:?}");
        assert!(matches!(judge(&[1.0, 1.0], &[1.0, f64::NAN], 1.0), Err(Mismatch::Element { col: 1, .. })));
    }

    #[test]
    fn share_of_wrong_elements_may_be_allowed() {
        let (got, expected) = ([1.0, 1.0, 1.0, 2.0], [1.0; 4]);
        assert!(judge(&got, &expected, 0.75).is_ok());
        assert!(judge(&got, &expected, 0.76).is_err());
        assert!(matches!(judge(&[f32::NAN, 1.0], &[1.0; 2], 0.5), Err(Mismatch::NotFinite { .. })));
    }

    #[test]
    fn largest_errors_cover_all_elements() {
        let reference = |values: &[f64]| Reference {
            sample: OutputSample { rows: vec![0], cols: (0..values.len()).collect() },
            values: values.to_vec(),
            projection: None,
        };
        let output = |values: &[f32]| Output { rows: 1, cols: values.len(), values: values.to_vec() };
        let found = LargestErrors::of(&output(&[1.5, 4.0]), &reference(&[1.0, 5.0])).unwrap();
        assert!(found.absolute == 1.0 && (found.relative - 0.5).abs() < 1e-6, "{found:?}");
        assert_eq!(LargestErrors::of(&output(&[f32::NAN]), &reference(&[1.0])), None);
    }
}
