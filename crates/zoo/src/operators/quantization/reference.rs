//! Reference of the quantized values and scales in the arithmetic of the format, and tolerance.

use super::{MAX_CROSSED_SHARE, Quantization};
use crate::gate::Tolerance;
use crate::operators::amax_scaling::{self, STATIC_AMAX, amax, quantized_value};
use crate::{ExactReference, Matrix, OutputSample, Spec};
use calorimeter_recipes::{Dtype, Element};

impl ExactReference for Quantization {
    fn depth(&self, spec: &Spec, output: usize) -> u64 {
        match output {
            0 => 16,
            _ => self.output_shape(spec).1,
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &OutputSample) -> Vec<f64> {
        sample.map_rows(|row| {
            let row = self.source_row(&inputs[0], row);
            let scale = self.row_scale(spec, &row);
            match output {
                0 => {
                    let code = |&col: &usize| {
                        f64::from(quantized_value(row[col], scale, self.output_element(spec), Dtype::Bf16))
                    };
                    sample.cols.iter().map(code).collect()
                }
                _ => vec![f64::from(scale)],
            }
        })
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        if output == 1 {
            return Tolerance::new(Dtype::F32, 1, 1);
        }
        let (rows, cols) = self.output_shape(spec);
        // Widest step of the format relative to the value below it. In a small matrix a single value may be off.
        let step = if self.output_element(spec) == Element::E4m3 { 1.0 / 8.0 } else { 1.0 / 2.0 };
        let crossed = MAX_CROSSED_SHARE.sqrt() + 1.0 / ((rows * cols) as f64).sqrt();
        Tolerance { rel_l2: step * crossed, element: 1.01 * step, ..Tolerance::default() }
    }
}

impl Quantization {
    fn row_scale(self, spec: &Spec, row: &[f32]) -> f32 {
        let magnitude = if self.is_static() { STATIC_AMAX } else { amax(row) };
        amax_scaling::scale(magnitude, self.output_element(spec), Dtype::Bf16)
    }
}
