//! Double-precision reference and tolerance of `cross_entropy`.

use super::CrossEntropy;
use crate::gate::Tolerance;
use crate::operators::loss;
use crate::operators::sequences::count;
use crate::operators::softmax::reference::exponentials;
use crate::{Exact, Matrix, Sample, Spec};

impl Exact for CrossEntropy {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        count(spec)
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, _: &Sample) -> Vec<f64> {
        let [logits, targets] = inputs else { unreachable!("two inputs are declared") };
        let row = |row: usize| {
            let (exponentials, sum) = exponentials(logits.row(row));
            sum.ln() - exponentials[targets.row(row)[0] as usize].ln()
        };
        vec![loss::mean_exact(logits.rows, row)]
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        loss::tolerance(spec)
    }
}
