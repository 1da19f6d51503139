//! Double-precision reference and tolerance of `add_ln`.

use super::{AddLn, SUM_OUTPUT};
use crate::gate::Tolerance;
use crate::operators::layer_norm;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for AddLn {
    fn depth(&self, _: &Spec, output: usize) -> u64 {
        if output == SUM_OUTPUT { 2 } else { 5 }
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], output: usize, sample: &OutputSample) -> Vec<f64> {
        sample.map_whole_rows(|row| {
            let sum = sum(inputs, row);
            if output == SUM_OUTPUT {
                sum
            } else {
                layer_norm::reference::affine_layer_norm_f64(&sum, &inputs[2], &inputs[3])
            }
        })
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        if output == SUM_OUTPUT { Tolerance::new(spec.dtype(), 1, 2) } else { layer_norm::reference::tolerance(spec) }
    }
}

fn sum(inputs: &[Matrix], row: usize) -> Vec<f64> {
    inputs[0].row(row).iter().zip(inputs[1].row(row)).map(|(&x, &y)| f64::from(x) + f64::from(y)).collect()
}
