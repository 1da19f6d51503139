//! Double-precision reference and tolerance of `rms_norm`.

use super::RmsNorm;
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec, normalize};

impl ExactReference for RmsNorm {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let gain = inputs[1].exact_row(0);
        sample.map_whole_rows(|row| {
            let normal = normalize::rms_norm_exact(&inputs[0].exact_row(row));
            normal.iter().zip(&gain).map(|(x, gain)| x * gain).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, spec.axis("dimension").max(16))
    }
}
