//! Double-precision reference and tolerance of `softmax`.

use super::Softmax;
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec};
use calorimeter_recipes::Dtype;

impl ExactReference for Softmax {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        sample.map_whole_rows(|row| {
            let (exponentials, sum) = shifted_exponentials(inputs[0].row(row));
            exponentials.into_iter().map(|x| x / sum).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let dimension = spec.axis("dimension");
        let rounded = Tolerance::new(spec.dtype(), 1, dimension.max(16));
        // Outputs of long rows are so small that f16 rounds them in fixed steps of 2^-24 (subnormals).
        let step = if spec.dtype() == Dtype::F16 { 2f64.powi(-24) * dimension as f64 } else { 0.0 };
        Tolerance {
            rel_l2: rounded.rel_l2 + 0.3 * step,
            element: rounded.element + 0.5 * step,
            slope: rounded.slope.map(|slope| slope + 0.3 * step),
            ..rounded
        }
    }
}

/// exp(x - max(x)) of a row of logits in double precision, and their sum.
pub(crate) fn shifted_exponentials(logits: &[f32]) -> (Vec<f64>, f64) {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let exponentials: Vec<f64> = logits.iter().map(|&x| (f64::from(x) - largest).exp()).collect();
    let sum = exponentials.iter().sum();
    (exponentials, sum)
}
