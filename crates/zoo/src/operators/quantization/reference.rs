//! Reference of the quantized values and scales in the arithmetic of the format, and tolerance.

use super::{CROSSED, Quantization};
use crate::gate::Tolerance;
use crate::operators::absmax::{self, FIXED, code, magnitude};
use crate::{Exact, Matrix, Sample, Spec};
use calorimeter_recipes::{Dtype, Element};

impl Exact for Quantization {
    fn depth(&self, spec: &Spec, output: usize) -> u64 {
        match output {
            0 => 16,
            _ => self.size(spec).1,
        }
    }

    fn reference(&self, spec: &Spec, inputs: &[Matrix], output: usize, sample: &Sample) -> Vec<f64> {
        sample.by_rows(|row| {
            let row = self.row(&inputs[0], row);
            let scale = self.scale(spec, &row);
            match output {
                0 => {
                    let code = |&col: &usize| f64::from(code(row[col], scale, self.output(spec), Dtype::Bf16));
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
        let (rows, cols) = self.size(spec);
        // Widest step of the format relative to the value below it. In a small matrix a single value may be off.
        let step = if self.output(spec) == Element::E4m3 { 1.0 / 8.0 } else { 1.0 / 2.0 };
        let crossed = CROSSED.sqrt() + 1.0 / ((rows * cols) as f64).sqrt();
        Tolerance { rel_l2: step * crossed, element: 1.01 * step, ..Tolerance::default() }
    }
}

impl Quantization {
    fn scale(self, spec: &Spec, row: &[f32]) -> f32 {
        let magnitude = if self.is_static() { FIXED } else { magnitude(row) };
        absmax::scale(magnitude, self.output(spec), Dtype::Bf16)
    }
}
