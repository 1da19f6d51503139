//! Double-precision reference and tolerance of `layer_norm`.

use super::LayerNorm;
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec, normalize};

impl ExactReference for LayerNorm {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        sample.map_whole_rows(|row| affine_layer_norm_f64(&inputs[0].exact_row(row), &inputs[1], &inputs[2]))
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        tolerance(spec)
    }
}

/// layer_norm(x) * gain + bias of one row in double precision.
pub(crate) fn affine_layer_norm_f64(x: &[f64], gain: &Matrix, bias: &Matrix) -> Vec<f64> {
    let affine = gain.row(0).iter().zip(bias.row(0)).map(|(&gain, &bias)| (f64::from(gain), f64::from(bias)));
    normalize::layer_norm_exact(x).into_iter().zip(affine).map(|(x, (gain, bias))| x * gain + bias).collect()
}

pub(crate) fn tolerance(spec: &Spec) -> Tolerance {
    // Elements of a short row may be close to each other, which amplifies the rounding error of the mean.
    let depth = match spec.axis("dimension") {
        ..8 => 8192,
        dimension => dimension.max(64),
    };
    Tolerance::new(spec.dtype(), 1, depth)
}
