//! Sizes, dtypes and layouts of a matmul.

use crate::Dtype;
use std::fmt;

/// Sizes of y[m, n] = x[m, k] · w[n, k]ᵀ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinearShape {
    /// Rows of the input and of the output.
    pub m: usize,
    /// Row length of the input and of the weight; the reduction dimension.
    pub k: usize,
    /// Rows of the weight; row length of the output.
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

/// Memory layout of the weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightLayout {
    /// w[n, k], the layout of linear layers.
    AlongK,
    /// w[k, n], the layout of a plain matrix product.
    AlongN,
}

/// Memory layout of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InputLayout {
    /// x[m, k].
    AlongK,
    /// x[k, m], the transposed input.
    AlongM,
}

/// Epilogue of a cuBLASLt matmul, applied before rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Epilogue {
    /// No epilogue.
    None,
    /// Bias per column.
    Bias,
    /// ReLU.
    Relu,
    /// Bias per column, then ReLU.
    BiasRelu,
}

impl Epilogue {
    /// True if the matmul has a bias input.
    pub(super) const fn has_bias(self) -> bool {
        matches!(self, Self::Bias | Self::BiasRelu)
    }
}

/// Dtypes, layouts and epilogue of a matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinearSpec {
    /// Dtype of x and w.
    pub kind: Dtype,
    /// Dtype of y and of the bias.
    pub output: Dtype,
    /// Layout of x.
    pub input: InputLayout,
    /// Layout of w.
    pub weight: WeightLayout,
    /// Epilogue.
    pub epilogue: Epilogue,
}

impl LinearSpec {
    /// y = x · wᵀ with one dtype and no epilogue.
    pub fn plain(kind: Dtype) -> Self {
        let (input, weight) = (InputLayout::AlongK, WeightLayout::AlongK);
        Self { kind, output: kind, input, weight, epilogue: Epilogue::None }
    }
}
