//! Reference and tolerance of the copy.

use super::HbmCopy;
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for HbmCopy {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        2
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        sample.map_elements(|row, col| f64::from(inputs[0].element(row, col)))
    }

    // A copy is exact; one rounding is the smallest tolerance that can be expressed.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }
}
