//! Double-precision reference and tolerance of `swiglu`.

use super::Swiglu;
use crate::gate::Tolerance;
use crate::operators::sequences::elementwise_tolerance;
use crate::{Activate, Activation, ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for Swiglu {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        inputs.iter().for_each(|input| input.compute_sampled_rows(sample));
        let at = |input: usize, row: usize, col: usize| f64::from(inputs[input].element(row, col));
        sample.map_elements(|row, col| Activation::Silu.eval_f64(at(0, row, col)) * at(1, row, col))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        elementwise_tolerance(spec)
    }
}
