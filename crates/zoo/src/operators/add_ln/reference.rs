//! Double-precision reference and tolerance of `add_ln`.

use super::{AddLn, SUM};
use crate::gate::Tolerance;
use crate::operators::layer_norm;
use crate::{Exact, Matrix, Sample, Spec};

impl Exact for AddLn {
    fn depth(&self, _: &Spec, output: usize) -> u64 {
        if output == SUM { 2 } else { 5 }
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        sample.by_whole_rows(|row| {
            let sum = sum(inputs, row);
            if output == SUM { sum } else { layer_norm::reference::exact(&sum, &inputs[2], &inputs[3]) }
        })
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        if output == SUM { Tolerance::new(spec.dtype(), 1, 2) } else { layer_norm::reference::tolerance(spec) }
    }
}

fn sum(inputs: &[Matrix], row: usize) -> Vec<f64> {
    inputs[0].row(row).iter().zip(inputs[1].row(row)).map(|(&x, &y)| f64::from(x) + f64::from(y)).collect()
}
