//! Normalisations of rows and their gradients: on a device, in f32 as everybody's kernels have them, and exactly.

use super::rows::{Rows, dot};
use crate::normalise::EPSILON;
use burn::tensor::{DType, Tensor, backend::Backend};

/// Which normalisation, without gain and bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// To mean 0 and variance 1.
    Layer,
    /// To mean square 1.
    Rms,
}

/// Normalised rows, and what each was divided by, in f32.
#[derive(Debug, Clone)]
pub struct Normalised<B: Backend> {
    pub rows: Tensor<B, 2>,
    root: Tensor<B, 2>,
}

/// The same in double precision.
pub struct ExactlyNormalised {
    pub rows: Rows,
    roots: Vec<f64>,
}

impl Norm {
    pub fn forward<B: Backend>(self, x: Tensor<B, 2>) -> Normalised<B> {
        let dtype = x.dtype();
        let wide = x.cast(DType::F32);
        let centred = match self {
            Self::Layer => wide.clone() - wide.mean_dim(1),
            Self::Rms => wide,
        };
        let root = (centred.clone().powi_scalar(2).mean_dim(1) + EPSILON).sqrt();
        Normalised { rows: (centred / root.clone()).cast(dtype), root }
    }

    /// The gradient of what was normalised.
    pub fn back<B: Backend>(self, kept: Normalised<B>, gradient: Tensor<B, 2>) -> Tensor<B, 2> {
        let dtype = gradient.dtype();
        let (rows, wide) = (kept.rows.cast(DType::F32), gradient.cast(DType::F32));
        let along = (rows.clone() * wide.clone()).mean_dim(1);
        let level = match self {
            Self::Layer => wide.clone() - wide.mean_dim(1),
            Self::Rms => wide,
        };
        ((level - rows * along) / kept.root).cast(dtype)
    }

    pub fn exact(self, x: &Rows) -> ExactlyNormalised {
        let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
        let centred = x.by_row(|_, row| {
            let middle = if self == Self::Layer { mean(row) } else { 0.0 };
            row.iter().map(|x| x - middle).collect()
        });
        let roots: Vec<f64> =
            centred.values.chunks(x.cols).map(|row| (dot(row, row) / row.len() as f64 + EPSILON).sqrt()).collect();
        let rows = centred.by_row(|at, row| row.iter().map(|x| x / roots[at]).collect());
        ExactlyNormalised { rows, roots }
    }

    /// The gradient of what was normalised: what points along the row or moves all of it alike is lost.
    pub fn exact_back(self, kept: &ExactlyNormalised, gradient: &Rows) -> Rows {
        gradient.by_row(|at, gradient| {
            let row = kept.rows.row(at);
            let count = row.len() as f64;
            let along = dot(row, gradient) / count;
            let level = if self == Self::Layer { gradient.iter().sum::<f64>() / count } else { 0.0 };
            gradient.iter().zip(row).map(|(gradient, x)| (gradient - level - x * along) / kept.roots[at]).collect()
        })
    }
}
