//! Double-precision reference, projection and tolerance of `ln_linear`.

use super::LnLinear;
use crate::gate::{Projection, Tolerance};
use crate::operators::layer_norm::reference::affine_layer_norm_f64;
use crate::operators::matmul::dims;
use crate::reference::{dot, project_matmul};
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for LnLinear {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let weight = &inputs[3];
        sample.map_rows(|row| {
            let x = normalized_row(inputs, row);
            sample.cols.iter().map(|&col| dot(&x, weight.row(col))).collect()
        })
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], _: usize) -> Option<Projection> {
        Some(project_matmul(dims(spec), |row| normalized_row(inputs, row), |col| inputs[3].exact_row(col)))
    }

    // The normalized rows and the matmul are rounded.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 2, 2 * spec.axis("k"))
    }
}

/// Row of x after layer normalization, gain and bias.
fn normalized_row(inputs: &[Matrix], row: usize) -> Vec<f64> {
    affine_layer_norm_f64(&inputs[0].exact_row(row), &inputs[1], &inputs[2])
}
