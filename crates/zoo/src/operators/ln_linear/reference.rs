//! What it computes, in double precision, and how far a kernel may be from that.

use super::{LnLinear, first};
use crate::gate::Tolerance;
use crate::operators::layer_norm::LayerNorm;
use crate::reference::dot;
use crate::{Exact, Matrix, Sample, Spec};

impl Exact for LnLinear {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let (norm, weight) = (first(spec), &inputs[3]);
        let cols: Vec<usize> = (0..inputs[0].cols).collect();
        sample.by_rows(|row| {
            let one = Sample { rows: vec![row], cols: cols.clone() };
            let x = LayerNorm.reference(&norm, inputs, 0, &one);
            sample.cols.iter().map(|&col| dot(&x, weight.row(col))).collect()
        })
    }

    // The normalised number and the product.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 2, 2 * spec.axis("k"))
    }
}
