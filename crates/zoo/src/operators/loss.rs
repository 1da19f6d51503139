//! What losses have in common: one number, the mean over all rows.
//!
//! It is f32 whatever the inputs are: a mean in half precision would hide what a kernel leaves out.

use super::sequences::size;
use crate::gate::Tolerance;
use crate::{Slot, Spec};
use burn::tensor::{Tensor, backend::Backend};
use calorimeter_recipes::{Dtype, Element};
use rayon::prelude::*;

pub(super) fn output() -> Slot {
    Slot::new(1, 1, Element::Float(Dtype::F32))
}

/// The mean of each row's value, in double precision.
pub(super) fn mean_exact(rows: usize, of: impl Fn(usize) -> f64 + Sync) -> f64 {
    // Collected, so that the order of the sum is always the same.
    let values: Vec<f64> = (0..rows).into_par_iter().map(&of).collect();
    values.iter().sum::<f64>() / rows as f64
}

/// The mean of a matrix on a device. Rows come first: one sum over millions of numbers would round them away.
pub(super) fn mean<B: Backend>(x: Tensor<B, 2>) -> Tensor<B, 2> {
    x.mean_dim(1).mean_dim(0)
}

/// For sums in f32 along rows, then over rows.
pub(super) fn tolerance(spec: &Spec) -> Tolerance {
    let (rows, cols) = size(spec);
    Tolerance::new(Dtype::F32, 1, (rows + cols).max(64))
}
