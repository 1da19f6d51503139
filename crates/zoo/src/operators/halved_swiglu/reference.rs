//! What it computes, in double precision, and how far a kernel may be from that.

use super::HalvedSwiglu;
use crate::gate::Tolerance;
use crate::operators::elementwise::reference::sigmoid;
use crate::{Exact, Matrix, Sample, Spec};

impl Exact for HalvedSwiglu {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &Sample) -> Vec<f64> {
        let half = spec.axis("n") as usize / 2;
        sample.by_elements(|row, col| {
            let x = inputs[0].row(row);
            let (a, b) = (f64::from(x[col % half]), f64::from(x[col % half + half]));
            let gate = sigmoid(a);
            match self {
                Self::Forward => a * gate * b,
                Self::Backward => {
                    let dy = f64::from(inputs[1].row(row)[col % half]);
                    if col < half { dy * b * gate * (1.0 + a * (1.0 - gate)) } else { dy * a * gate }
                }
            }
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 16)
    }
}
