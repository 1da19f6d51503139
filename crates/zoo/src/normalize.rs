//! Row normalizations, on a device and in double precision.

use burn::tensor::{DType, Tensor, backend::Backend};

pub(crate) const EPSILON: f64 = 1e-5;

/// Applies a function in f32 for any dtype, as common kernels do.
pub(crate) fn compute_in_f32<B: Backend>(
    x: Tensor<B, 2>,
    function: impl FnOnce(Tensor<B, 2>) -> Tensor<B, 2>,
) -> Tensor<B, 2> {
    let dtype = x.dtype();
    function(x.cast(DType::F32)).cast(dtype)
}

/// Normalizes rows to mean 0 and variance 1.
pub(crate) fn layer_norm<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    let centered = x.clone() - x.mean_dim(1);
    let variance = centered.clone().powi_scalar(2).mean_dim(1);
    centered / (variance + EPSILON).sqrt()
}

/// Normalizes rows to mean square 1.
pub(crate) fn rms_norm<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    let square = x.clone().powi_scalar(2).mean_dim(1);
    x / (square + EPSILON).sqrt()
}

/// Normalizes one row to mean 0 and variance 1, in double precision.
pub(crate) fn layer_norm_exact(row: &[f64]) -> Vec<f64> {
    let n = row.len() as f64;
    let mean = row.iter().sum::<f64>() / n;
    let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    row.iter().map(|x| (x - mean) / (variance + EPSILON).sqrt()).collect()
}

/// Normalizes one row to mean square 1, in double precision.
pub(crate) fn rms_norm_exact(row: &[f64]) -> Vec<f64> {
    let square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    row.iter().map(|x| x / (square + EPSILON).sqrt()).collect()
}
