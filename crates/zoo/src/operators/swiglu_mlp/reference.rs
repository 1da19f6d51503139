//! Double-precision reference and tolerance of `swiglu_mlp`.

use super::SwigluMlp;
use crate::gate::Tolerance;
use crate::operators::matmul::size;
use crate::reference::dot;
use crate::{Activate, Activation, ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for SwigluMlp {
    // The complete hidden layer of a row is computed, even if few of its outputs are sampled.
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        let (_, k, n) = size(spec);
        OutputSample::depth_for_row_cost(k, 3 * k * n)
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let [x, gate, up, down] = inputs else { unreachable!("four inputs are declared") };
        sample.map_rows(|row| {
            let x = x.exact_row(row);
            let hidden: Vec<f64> =
                (0..gate.rows).map(|i| Activation::Silu.eval_f64(dot(&x, gate.row(i))) * dot(&x, up.row(i))).collect();
            sample.cols.iter().map(|&col| dot(&hidden, down.row(col))).collect()
        })
    }

    // Gate, SiLU (two), up, their product, the output.
    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let (_, k, n) = size(spec);
        Tolerance::new(spec.dtype(), 6, 2 * k + n).with_computed_factors(n)
    }
}
