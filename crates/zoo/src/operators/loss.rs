//! Parts shared by the loss operators: one f32 result, the mean over all rows.
//!
//! The result is f32 for every input dtype: a mean in half precision would hide terms that a kernel drops.

use super::sequences::size;
use crate::gate::Tolerance;
use crate::{OutputSlot, Spec};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::{Dtype, Element};
use rayon::prelude::*;

pub(super) fn scalar_output() -> OutputSlot {
    OutputSlot::new(1, 1, Element::Float(Dtype::F32))
}

/// Mean over rows of `of(row)` in double precision.
pub(super) fn mean_f64(rows: usize, of: impl Fn(usize) -> f64 + Sync) -> f64 {
    // Collected first, so that the order of the additions is deterministic.
    let values: Vec<f64> = (0..rows).into_par_iter().map(&of).collect();
    values.iter().sum::<f64>() / rows as f64
}

/// Mean of a matrix on a device. Rows are reduced first, because a single f32 sum over millions of elements would lose
/// them to rounding.
pub(super) fn mean<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    x.mean_dim(1).mean_dim(0)
}

/// Tolerance of f32 sums along rows, then over rows.
pub(super) fn tolerance(spec: &Spec) -> Tolerance {
    let (rows, cols) = size(spec);
    Tolerance::new(Dtype::F32, 1, (rows + cols).max(64))
}
