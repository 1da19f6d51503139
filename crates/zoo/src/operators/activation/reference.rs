//! Double-precision reference and tolerance of the activations.

use super::{ElementwiseActivation, GELU_TANH_CUBIC, GELU_TANH_SLOPE};
use crate::gate::Tolerance;
use crate::operators::sequences::elementwise_tolerance;
use crate::{Activate, Activation, ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for ElementwiseActivation {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        inputs.iter().for_each(|input| input.compute_sampled_rows(sample));
        sample.map_elements(|row, col| self.reference_value(f64::from(inputs[0].element(row, col))))
    }

    // The two GELU variants differ by less than one rounding in f16 and bf16, so only f32 distinguishes them.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        elementwise_tolerance(spec)
    }
}

impl ElementwiseActivation {
    /// f(x) in double precision.
    fn reference_value(self, x: f64) -> f64 {
        match self {
            Self::Gelu => Activation::Gelu.eval_f64(x),
            Self::GeluTanh => 0.5 * x * (1.0 + (GELU_TANH_SLOPE * (x + GELU_TANH_CUBIC * x * x * x)).tanh()),
            Self::Silu => Activation::Silu.eval_f64(x),
        }
    }
}
