//! Normalisations in f32 whatever the model's dtype, as everybody's kernels do.

use burn::tensor::{DType, Tensor, backend::Backend};

pub const EPSILON: f64 = 1e-5;

/// Rows with mean 0 and variance 1.
pub fn layer_norm<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    let dtype = x.dtype();
    let x = x.cast(DType::F32);
    let centred = x.clone() - x.mean_dim(1);
    let variance = centred.clone().powi_scalar(2).mean_dim(1);
    (centred / (variance + EPSILON).sqrt()).cast(dtype)
}

/// Rows with mean square 1.
pub fn rms_norm<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    let dtype = x.dtype();
    let x = x.cast(DType::F32);
    let square = x.clone().powi_scalar(2).mean_dim(1);
    (x / (square + EPSILON).sqrt()).cast(dtype)
}

/// A row with mean 0 and variance 1, in double precision.
pub fn layer_norm_exact(row: impl ExactSizeIterator<Item = f64> + Clone) -> Vec<f64> {
    let n = row.len() as f64;
    let mean = row.clone().sum::<f64>() / n;
    let variance = row.clone().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    row.map(|x| (x - mean) / (variance + EPSILON).sqrt()).collect()
}

/// A row with mean square 1, in double precision.
pub fn rms_norm_exact(row: &[f64]) -> Vec<f64> {
    let square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    row.iter().map(|x| x / (square + EPSILON).sqrt()).collect()
}
