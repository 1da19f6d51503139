//! Double-precision reference, projection and tolerance of the GEMM operators.

use super::Gemm;
use crate::gate::{Projection, Tolerance};
use crate::operators::e4m3;
use crate::operators::matmul::{column, dims, sampled_products};
use crate::reference::project_matmul;
use crate::{ExactReference, Matrix, OutputSample, Spec};
use calorimeter_recipes::{Dtype, Element};

impl ExactReference for Gemm {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        spec.axis("k")
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let mut values = sampled_products(sample, |row| inputs[0].row(row).to_vec(), |col| column(&inputs[1], col));
        for (i, value) in values.iter_mut().enumerate() {
            let (row, col) = sample.position(i);
            if self.has_scales() {
                *value *= f64::from(inputs[2].row(row)[0]) * f64::from(inputs[3].row(0)[col]);
            }
            if *self == Self::Accumulated {
                *value += f64::from(inputs[4].row(row)[col]);
            }
            if self.output_element(spec) == Element::E4m3 {
                *value = value.clamp(-f64::from(e4m3::MAX_VALUE), f64::from(e4m3::MAX_VALUE));
            }
        }
        values
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], _: usize) -> Option<Projection> {
        // e4m3 outputs saturate, so that their sums do not follow from the inputs.
        if self.output_element(spec) == Element::E4m3 {
            return None;
        }
        let scale = |input: usize, at: usize| if self.has_scales() { f64::from(inputs[input].values[at]) } else { 1.0 };
        let by = |line: Vec<f32>, scale: f64| line.into_iter().map(|x| scale * f64::from(x)).collect();
        let row = |row: usize| by(inputs[0].row(row).to_vec(), scale(2, row));
        let product = project_matmul(dims(spec), row, |col| by(column(&inputs[1], col), scale(3, col)));
        Some(if *self == Self::Accumulated { product.plus_matrix(&inputs[4]) } else { product })
    }

    fn tolerance(&self, spec: &Spec, _: usize) -> Tolerance {
        let depth = spec.axis("k");
        match self.output_element(spec) {
            // Hopper tensor cores keep 14 bits of an e4m3 accumulator and add 128 products to it, which errs by about
            // one rounding to f16.
            Element::Float(Dtype::F32) if spec.element == Element::E4m3 => Tolerance::new(Dtype::F16, 1, depth),
            Element::Float(output) => Tolerance::new(output, 1, depth),
            // e4m3 rounds 16 times as coarsely as bf16.
            _ => Tolerance::new(Dtype::Bf16, 1, depth).with_quantized_output(16.0),
        }
    }
}
