//! Double-precision reference, projection and tolerance of `ln_linear`.

use super::LnLinear;
use crate::gate::{Projection, Tolerance};
use crate::operators::layer_norm::reference::exact;
use crate::operators::product::sides;
use crate::reference::{dot, projected};
use crate::{Exact, Matrix, Sample, Spec};

impl Exact for LnLinear {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let weight = &inputs[3];
        sample.by_rows(|row| {
            let x = normalized(inputs, row);
            sample.cols.iter().map(|&col| dot(&x, weight.row(col))).collect()
        })
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], _: usize) -> Option<Projection> {
        Some(projected(sides(spec), |row| normalized(inputs, row), |col| inputs[3].exact_row(col)))
    }

    // The normalized rows and the matmul are rounded.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 2, 2 * spec.axis("k"))
    }
}

/// Row of x after layer normalization, gain and bias.
fn normalized(inputs: &[Matrix], row: usize) -> Vec<f64> {
    exact(&inputs[0].exact_row(row), &inputs[1], &inputs[2])
}
