//! Weight on the host, the input of every recipe.

use crate::Dtype;
use crate::FloatType;
use rayon::prelude::*;
use std::sync::Arc;

/// Weight of a linear layer: one row of `k` values for each of `n` output channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    n: usize,
    k: usize,
    values: Arc<Vec<f32>>,
    dtype: Dtype,
}

impl Weight {
    /// Creates a weight from row-major values, rounded to `dtype`.
    ///
    /// # Panics
    /// If there are not `n * k` values.
    pub fn new(n: usize, k: usize, mut values: Vec<f32>, dtype: Dtype) -> Self {
        assert_eq!(values.len(), n * k, "a weight of {n} x {k} has {} values", n * k);
        values.par_iter_mut().for_each(|value| *value = dtype.round(*value));
        Self { n, k, values: values.into(), dtype }
    }

    /// Output channels.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Input features.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Dtype in which the values are exact.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Values of an output channel.
    pub fn row(&self, channel: usize) -> &[f32] {
        &self.values[channel * self.k..(channel + 1) * self.k]
    }
}
