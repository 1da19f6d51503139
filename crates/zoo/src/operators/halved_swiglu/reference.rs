//! Double-precision reference and tolerance of SwiGLU of two halves and its gradient.

use super::HalvedSwiglu;
use crate::gate::Tolerance;
use crate::operators::elementwise::reference::sigmoid;
use crate::{ExactReference, Matrix, OutputSample, Spec};

impl ExactReference for HalvedSwiglu {
    fn depth(&self, _: &Spec, _: usize) -> u64 {
        4
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let half = spec.axis("n") as usize / 2;
        sample.map_elements(|row, col| {
            let x = inputs[0].row(row);
            let (a, b) = (f64::from(x[col % half]), f64::from(x[col % half + half]));
            let sigmoid_a = sigmoid(a);
            match self {
                Self::Forward => a * sigmoid_a * b,
                Self::Backward => {
                    let dy = f64::from(inputs[1].row(row)[col % half]);
                    if col < half { dy * b * sigmoid_a * (1.0 + a * (1.0 - sigmoid_a)) } else { dy * a * sigmoid_a }
                }
            }
        })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        Tolerance::new(spec.dtype(), 1, 16)
    }
}
