//! Sizes, dtypes and layouts of a matmul.

use crate::Dtype;

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
