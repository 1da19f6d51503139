//! Double-precision reference and tolerance of RMS normalization and its gradients.

use super::{EPSILON, FlaxRmsNorm};
use crate::gate::Tolerance;
use crate::{ExactReference, Matrix, OutputSample, Spec};
use calorimeter_recipes::Dtype;
use rayon::prelude::*;

impl ExactReference for FlaxRmsNorm {
    fn depth(&self, spec: &Spec, output: usize) -> u64 {
        if output == 1 { spec.axis("m") } else { 8 }
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], output: usize, sample: &OutputSample) -> Vec<f64> {
        let (x, weight) = (&inputs[0], inputs[1].row(0));
        if output == 1 {
            let scales: Vec<f64> = (0..x.rows).into_par_iter().map(|row| inverse_rms(x.row(row))).collect();
            let term = |row: usize, col: usize| f64::from(x.row(row)[col]) * f64::from(inputs[2].row(row)[col]);
            let of_col = |col: usize| (0..x.rows).map(|row| scales[row] * term(row, col)).sum();
            return sample.cols.par_iter().map(|&col| of_col(col)).collect();
        }
        sample.map_rows(|row| {
            let scale = inverse_rms(x.row(row));
            let at = |col: usize| (f64::from(x.row(row)[col]), f64::from(weight[col]));
            let Some(dy) = inputs.get(2).map(|dy| dy.row(row)) else {
                return sample.cols.iter().map(|&col| at(col).0 * scale * at(col).1).collect();
            };
            let terms = dy.iter().enumerate().map(|(col, &dy)| at(col).0 * at(col).1 * f64::from(dy));
            let shift = scale.powi(3) * terms.sum::<f64>() / dy.len() as f64;
            sample.cols.iter().map(|&col| scale * at(col).1 * f64::from(dy[col]) - shift * at(col).0).collect()
        })
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        let (m, n) = (spec.axis("m"), spec.axis("n"));
        match output {
            0 => Tolerance::new(spec.dtype(), 1, n),
            _ => Tolerance::new(Dtype::F32, 4, m.max(n)),
        }
    }
}

/// 1 / RMS of a row.
fn inverse_rms(row: &[f32]) -> f64 {
    let mean = row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / row.len() as f64;
    1.0 / (mean + EPSILON).sqrt()
}
