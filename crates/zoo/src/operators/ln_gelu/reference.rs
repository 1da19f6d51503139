//! Double-precision reference and tolerance of `ln_gelu`.

use super::LnGelu;
use crate::gate::Tolerance;
use crate::operators::layer_norm;
use crate::{Activate, Activation, Exact, Matrix, Sample, Spec};

impl Exact for LnGelu {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        8
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        sample.by_rows(|row| {
            let normal = layer_norm::reference::exact(&inputs[0].exact_row(row), &inputs[1], &inputs[2]);
            sample.cols.iter().map(|&col| Activation::Gelu.exact(normal[col])).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        layer_norm::reference::tolerance(spec)
    }
}
