//! Double-precision reference and tolerance of `ln_gelu`.

use super::LnGelu;
use crate::gate::Tolerance;
use crate::operators::layer_norm;
use crate::{Activate, Activation, ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for LnGelu {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        8
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        sample.map_rows(|row| {
            let normal =
                layer_norm::reference::affine_layer_norm_f64(&inputs[0].exact_row(row), &inputs[1], &inputs[2]);
            sample.cols.iter().map(|&col| Activation::Gelu.eval_f64(normal[col])).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        layer_norm::reference::tolerance(spec)
    }
}
