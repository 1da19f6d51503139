//! Double-precision reference, projection and tolerance of the BLAS routines.

use super::{ALPHA, Blas};
use crate::gate::{Projection, Tolerance};
use crate::operators::matmul::{column, dims};
use crate::reference::{dot, project_matmul};
use crate::{ExactReference, Matrix, OutputSample, Spec};
use calorimeter_recipes::Dtype;

impl ExactReference for Blas {
    fn depth(&self, spec: &Spec, _: usize) -> u64 {
        match self {
            Self::Dot => spec.axis("n"),
            Self::Axpy => 2,
            Self::Gemv | Self::Matmul => spec.axis("k"),
        }
    }

    fn reference(&self, _: &Spec, inputs: &[Matrix], _: usize, sample: &OutputSample) -> Vec<f64> {
        let (a, b) = (&inputs[0], &inputs[1]);
        match self {
            Self::Dot => vec![dot(&a.exact_row(0), b.row(0))],
            Self::Axpy => sample
                .map_elements(|_, col| f64::from(ALPHA) * f64::from(a.element(0, col)) + f64::from(b.element(0, col))),
            Self::Gemv => {
                let x = b.exact_row(0);
                sample.map_elements(|_, row| dot(&x, a.row(row)))
            }
            Self::Matmul => {
                let columns: Vec<Vec<f32>> = sample.cols.iter().map(|&col| column(b, col)).collect();
                sample.map_rows(|row| {
                    let x = a.exact_row(row);
                    columns.iter().map(|column| dot(&x, column)).collect()
                })
            }
        }
    }

    fn projection(&self, spec: &Spec, inputs: &[Matrix], _: usize) -> Option<Projection> {
        let exact = |col: usize| column(&inputs[1], col).into_iter().map(f64::from).collect();
        (*self == Self::Matmul).then(|| project_matmul(dims(spec), |row| inputs[0].exact_row(row), exact))
    }

    fn tolerance(&self, spec: &Spec, output: usize) -> Tolerance {
        let depth = self.depth(spec, output);
        match self {
            Self::Dot => Tolerance::new(Dtype::F32, 1, depth),
            Self::Axpy => Tolerance::new(spec.dtype(), 2, depth),
            Self::Gemv | Self::Matmul => Tolerance::new(spec.dtype(), 1, depth),
        }
    }
}
