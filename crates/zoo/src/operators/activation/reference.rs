//! Double-precision reference and tolerance of the activations.

use super::{CUBIC, ElementwiseActivation, SLOPE};
use crate::gate::Tolerance;
use crate::operators::sequences::element_wise;
use crate::{Activate, Activation, Exact, Matrix, Sample, Spec};

impl Exact for ElementwiseActivation {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        inputs.iter().for_each(|input| input.make_rows_of(sample));
        sample.by_elements(|row, col| self.exact(f64::from(inputs[0].at(row, col))))
    }

    // The two GELU variants differ by less than one rounding in f16 and bf16, so only f32 distinguishes them.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        element_wise(spec)
    }
}

impl ElementwiseActivation {
    /// f(x) in double precision.
    fn exact(self, x: f64) -> f64 {
        match self {
            Self::Gelu => Activation::Gelu.exact(x),
            Self::GeluTanh => 0.5 * x * (1.0 + (SLOPE * (x + CUBIC * x * x * x)).tanh()),
            Self::Silu => Activation::Silu.exact(x),
        }
    }
}
