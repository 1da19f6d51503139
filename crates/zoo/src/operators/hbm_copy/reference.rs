//! What it computes, in double precision, and how far a kernel may be from that.

use super::HbmCopy;
use crate::gate::Tolerance;
use crate::{Exact, Matrix, Sample, Spec};

impl Exact for HbmCopy {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        2
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        sample.by_elements(|row, col| f64::from(inputs[0].at(row, col)))
    }

    // Nothing is computed; the width of one rounding is the least that there is.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }
}
