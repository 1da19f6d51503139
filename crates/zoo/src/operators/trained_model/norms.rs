//! Normalizations of rows and their gradients: on tensors in f32, as in common kernels, and in double precision.

use super::matrix_f64::{MatrixF64, dot};
use crate::normalize::EPSILON;
use burn::tensor::{DType, Tensor, backend::Backend};

/// Normalization without gain and bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Norm {
    /// Mean 0 and variance 1.
    Layer,
    /// Mean square 1.
    Rms,
}

/// Normalized rows, and the f32 divisor of each row.
#[derive(Debug, Clone)]
pub(super) struct Normalized<B: Backend> {
    pub rows: Tensor<B, 2>,
    divisor: Tensor<B, 2>,
}

/// Normalized rows and the divisor of each row, in double precision.
pub(super) struct NormalizedF64 {
    pub rows: MatrixF64,
    divisors: Vec<f64>,
}

impl Norm {
    pub(super) fn forward<B: Backend>(self, x: Tensor<B, 2>) -> Normalized<B> {
        let dtype = x.dtype();
        let wide = x.cast(DType::F32);
        let centered = match self {
            Self::Layer => wide.clone() - wide.mean_dim(1),
            Self::Rms => wide,
        };
        let root = (centered.clone().powi_scalar(2).mean_dim(1) + EPSILON).sqrt();
        Normalized { rows: (centered / root.clone()).cast(dtype), divisor: root }
    }

    /// Gradient of the input, given the gradient of the normalized rows.
    pub(super) fn backward<B: Backend>(self, saved: Normalized<B>, gradient: Tensor<B, 2>) -> Tensor<B, 2> {
        let dtype = gradient.dtype();
        let (rows, wide) = (saved.rows.cast(DType::F32), gradient.cast(DType::F32));
        let along = (rows.clone() * wide.clone()).mean_dim(1);
        let level = match self {
            Self::Layer => wide.clone() - wide.mean_dim(1),
            Self::Rms => wide,
        };
        ((level - rows * along) / saved.divisor).cast(dtype)
    }

    pub(super) fn forward_f64(self, x: &MatrixF64) -> NormalizedF64 {
        let mean = |row: &[f64]| row.iter().sum::<f64>() / row.len() as f64;
        let centered = x.map_rows(|_, row| {
            let middle = if self == Self::Layer { mean(row) } else { 0.0 };
            row.iter().map(|x| x - middle).collect()
        });
        let roots: Vec<f64> =
            centered.values.chunks(x.cols).map(|row| (dot(row, row) / row.len() as f64 + EPSILON).sqrt()).collect();
        let rows = centered.map_rows(|at, row| row.iter().map(|x| x / roots[at]).collect());
        NormalizedF64 { rows, divisors: roots }
    }

    /// Gradient of the input, given the gradient of the normalized rows: (g - x̂ mean(g x̂)) / divisor, for layer
    /// normalization also minus mean(g).
    pub(super) fn backward_f64(self, saved: &NormalizedF64, gradient: &MatrixF64) -> MatrixF64 {
        gradient.map_rows(|at, gradient| {
            let row = saved.rows.row(at);
            let count = row.len() as f64;
            let along = dot(row, gradient) / count;
            let level = if self == Self::Layer { gradient.iter().sum::<f64>() / count } else { 0.0 };
            gradient.iter().zip(row).map(|(gradient, x)| (gradient - level - x * along) / saved.divisors[at]).collect()
        })
    }
}
