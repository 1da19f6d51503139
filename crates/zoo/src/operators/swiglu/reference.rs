//! Double-precision reference and tolerance of `swiglu`.

use super::Swiglu;
use crate::gate::Tolerance;
use crate::operators::sequences::element_wise;
use crate::{Activate, Activation, Exact, Matrix, Sample, Spec};

impl Exact for Swiglu {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        inputs.iter().for_each(|input| input.make_rows_of(sample));
        let at = |input: usize, row: usize, col: usize| f64::from(inputs[input].at(row, col));
        sample.by_elements(|row, col| Activation::Silu.exact(at(0, row, col)) * at(1, row, col))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        element_wise(spec)
    }
}
