//! Specification of a linear layer: the contract between recipes, which produce it, and kernels, which accept it.

use crate::{Activation, Dtype, Format, PrecisionHint, Sparsity};

/// Operands of the matmul of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MatmulMode {
    /// Dequantized values.
    Values,
    /// Quantized values. The result is rounded to this dtype, and again after each scale, input scale first.
    QuantizedValues(Dtype),
}

/// Operation that precedes the layer. Its result is rounded to the dtype of the layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prologue {
    /// No prologue.
    None,
    /// Layer normalization of each row, without gain and bias.
    LayerNorm,
    /// Division of each row by its root mean square.
    RmsNorm,
    /// Element-wise activation.
    Activation(Activation),
    /// Attention among the 16 tokens of each sequence. A row of x holds q, k and v of one token, each divided into
    /// heads.
    ShortAttention {
        /// Number of heads.
        heads: usize,
    },
}

/// Linear layer y = f(p(x) · wᵀ) + addend, with a prologue p, an activation f, and operands p(x) and w that may be
/// quantized.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerSpec {
    /// Dtype of x and y.
    pub dtype: Dtype,
    /// Format of a quantized weight.
    pub weight: Option<Format>,
    /// Format that p(x) is quantized to at run time.
    pub input: Option<Format>,
    /// Operands of the matmul.
    pub matmul: MatmulMode,
    /// Sparsity of the weight.
    pub sparsity: Option<Sparsity>,
    /// Reduced precision that kernels are allowed to use.
    pub precision_hint: Option<PrecisionHint>,
    /// Prologue p, applied to x.
    pub prologue: Prologue,
    /// Activation f of the epilogue.
    pub activation: Option<Activation>,
    /// True if a matrix of the shape of y is added last.
    pub has_addend: bool,
}

impl LayerSpec {
    /// Unquantized layer without prologue and epilogue.
    pub fn unquantized(dtype: Dtype) -> Self {
        Self {
            dtype,
            weight: None,
            input: None,
            matmul: MatmulMode::Values,
            sparsity: None,
            precision_hint: None,
            prologue: Prologue::None,
            activation: None,
            has_addend: false,
        }
    }

    /// Layer with a quantized weight and an unquantized input.
    pub fn weight_only(dtype: Dtype, weight: Format) -> Self {
        Self { weight: Some(weight), ..Self::unquantized(dtype) }
    }

    /// Layer with a quantized weight and a dynamically quantized input.
    pub fn dynamic(dtype: Dtype, weight: Format, input: Format, matmul: MatmulMode) -> Self {
        Self { weight: Some(weight), input: Some(input), matmul, ..Self::unquantized(dtype) }
    }
}
