//! Double-precision reference, projection and tolerance of the linear layers.

use super::LinearBias;
use crate::gate::{Projection, Tolerance};
use crate::operators::matmul::dims;
use crate::reference::{dot, project_matmul};
use crate::{Activate, ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for LinearBias {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let (x, weight, bias) = (&inputs[0], &inputs[1], inputs[2].row(0));
        let activate = |y: f64| self.activation().map_or(y, |activation| activation.eval_f64(y));
        sample.map_rows(|row| {
            let x = x.exact_row(row);
            sample.cols.iter().map(|&col| activate(dot(&x, weight.row(col)) + f64::from(bias[col]))).collect()
        })
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], _: usize) -> Option<Projection> {
        let product = || project_matmul(dims(spec), |row| inputs[0].exact_row(row), |col| inputs[1].exact_row(col));
        (*self == Self::Plain).then(|| product().plus_row(inputs[2].row(0)))
    }

    // The matmul, the bias, and the steps of burn's activation, each of which rounds.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let steps = match self {
            Self::Plain | Self::Relu => 0,
            Self::Gelu => 5,
            Self::Silu => 2,
        };
        Tolerance::new(spec.dtype(), 2 + steps, spec.axis("k"))
    }
}
