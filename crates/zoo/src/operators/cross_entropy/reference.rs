//! Double-precision reference and tolerance of `cross_entropy`.

use super::CrossEntropy;
use crate::gate::Tolerance;
use crate::operators::loss;
use crate::operators::sequences::element_count;
use crate::operators::softmax::reference::shifted_exponentials;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for CrossEntropy {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        element_count(spec)
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, _: &OutputSample) -> Vec<f64> {
        let [logits, targets] = inputs else { unreachable!("two inputs are declared") };
        let row = |row: usize| {
            let (exponentials, sum) = shifted_exponentials(logits.row(row));
            sum.ln() - exponentials[targets.row(row)[0] as usize].ln()
        };
        vec![loss::mean_f64(logits.rows, row)]
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        loss::tolerance(spec)
    }
}
