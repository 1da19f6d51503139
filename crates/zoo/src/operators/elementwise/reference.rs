//! Double-precision reference and tolerance of the elementwise operations.

use super::Elementwise;
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for Elementwise {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        inputs.iter().for_each(|input| input.compute_sampled_rows(sample));
        let at = |input: usize, row: usize, col: usize| f64::from(inputs[input].element(row, col));
        sample.map_elements(|row, col| match self {
            Self::TrainingAdd | Self::Add => at(0, row, col) + at(1, row, col),
            Self::SiluMul => at(0, row, col) * sigmoid(at(0, row, col)) * at(1, row, col),
            Self::Sigmoid => sigmoid(at(0, row, col)),
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let roundings = match self {
            Self::TrainingAdd | Self::Add => 1,
            Self::SiluMul => 3,
            Self::Sigmoid => 2,
        };
        Tolerance::new(spec.dtype(), roundings, 4)
    }
}

/// 1 / (1 + e^-x).
pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}
