//! Reference and tolerance of the copies.

use super::Transfer;
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for Transfer {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        1
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], output: usize, sample: &OutputSample) -> Vec<f64> {
        sample.map_elements(|row, col| f64::from(inputs[output].element(row, col)))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 1)
    }
}
