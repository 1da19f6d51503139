//! Sizes, types and layout of a matrix product.

use crate::Dtype;
use std::fmt;

/// The sizes of y[m, n] = x[m, k] · w[n, k]ᵀ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinearShape {
    /// Rows of the input and of the output.
    pub m: usize,
    /// Length of a row of the input and of the weight.
    pub k: usize,
    /// Rows of the weight, length of a row of the output.
    pub n: usize,
}

impl LinearShape {
    pub(super) fn x_bytes(self, kind: Dtype) -> usize {
        self.m * self.k * kind.width()
    }

    pub(super) fn w_bytes(self, kind: Dtype) -> usize {
        self.n * self.k * kind.width()
    }

    pub(super) fn y_bytes(self, kind: Dtype) -> usize {
        self.m * self.n * kind.width()
    }
}

impl fmt::Display for LinearShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m={} k={} n={}", self.m, self.k, self.n)
    }
}

/// How a weight lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightLayout {
    /// w[n, k], as linear layers keep it.
    AlongK,
    /// w[k, n], the second factor of a product of matrices.
    AlongN,
}

/// How an input lies in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InputLayout {
    /// x[m, k], row by row.
    AlongK,
    /// x[k, m], what is summed up from row to row.
    AlongM,
}

/// What cuBLASLt does with a sum before it rounds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Epilogue {
    /// Nothing.
    Nothing,
    /// Adds the bias of its column.
    Bias,
    /// What is below zero becomes zero.
    Relu,
    /// Adds the bias of its column, and what is below zero becomes zero.
    BiasRelu,
}

impl Epilogue {
    /// Whether a product has a bias among its inputs.
    pub(super) const fn has_bias(self) -> bool {
        matches!(self, Self::Bias | Self::BiasRelu)
    }
}

/// Types and layout of a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinearForm {
    /// The type of x and w.
    pub kind: Dtype,
    /// The type of y, and of the bias.
    pub output: Dtype,
    /// How x lies in memory.
    pub input: InputLayout,
    /// How w lies in memory.
    pub weight: WeightLayout,
    /// What is done with the sums.
    pub epilogue: Epilogue,
}

impl LinearForm {
    /// y = x · wᵀ of one type.
    pub fn plain(kind: Dtype) -> Self {
        let (input, weight) = (InputLayout::AlongK, WeightLayout::AlongK);
        Self { kind, output: kind, input, weight, epilogue: Epilogue::Nothing }
    }
}
