//! Double-precision reference and tolerance of the STREAM kernels.

use super::{FACTOR, Stream};
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec};
use calorimeter_recipes::FloatType;

impl ExactReference for Stream {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        2
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let factor = f64::from(spec.dtype().round(FACTOR));
        let at = |input: usize, row: usize, col: usize| f64::from(inputs[input].element(row, col));
        sample.map_elements(|row, col| match self {
            Self::Copy => at(0, row, col),
            Self::Scale => factor * at(0, row, col),
            Self::Add => at(0, row, col) + at(1, row, col),
            Self::Triad => at(0, row, col) + factor * at(1, row, col),
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 2, 2)
    }
}
