//! Double-precision reference and tolerance of `mse_loss`.

use super::MseLoss;
use crate::gate::Tolerance;
use crate::operators::loss;
use crate::operators::sequences::element_count;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for MseLoss {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        2 * element_count(spec)
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, _: &OutputSample) -> Vec<f64> {
        let [x, y] = inputs else { unreachable!("two inputs are declared") };
        let square = |(&x, &y): (&f32, &f32)| (f64::from(x) - f64::from(y)).powi(2);
        let row = |row: usize| x.row(row).iter().zip(y.row(row)).map(square).sum::<f64>() / x.cols as f64;
        vec![loss::mean_f64(x.rows, row)]
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        loss::tolerance(spec)
    }
}
