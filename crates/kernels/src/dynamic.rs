//! Linear layers with dynamic quantization: the input is quantized at run time.

use crate::{Activation, Dtype};

/// Storage format of the quantized input and weight. The input's scale maps its amax to the largest quantized value;
/// each step of the computation is rounded to the input's dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DynamicFormat {
    /// int8; input values are clamped to ±127 and accumulators are exact. Weight scales have the layer's dtype.
    Int8,
    /// e4m3 without NaN. Weight scales are f32.
    E4m3,
    /// Symmetric int4 weight with int8 inputs from -128 to 127, quantized in f32. Scales are f32.
    Int4,
    /// int4 weight in groups of [`DynamicFormat::GROUP_SIZE`] values with int8 inputs from -127 to 127. A weight value times
    /// its group scale (of the layer's dtype) is rounded to int8; row scales apply to that int8 value.
    Int4Grouped,
}

impl DynamicFormat {
    /// Largest k for which an i32 accumulator cannot overflow: each term is at most 127 * 128 in magnitude.
    pub const MAX_INT8_K: usize = i32::MAX as usize / (127 * 128);

    /// Weight values that share a scale in [`DynamicFormat::Int4Grouped`].
    pub const GROUP_SIZE: usize = 128;

    /// Largest k with exact accumulators; `None` for floating-point formats.
    pub const fn max_exact_k(self) -> Option<usize> {
        match self {
            Self::Int8 | Self::Int4Grouped => Some(Self::MAX_INT8_K),
            // Products are scaled by 16 during accumulation.
            Self::Int4 => Some(i32::MAX as usize / (128 * 128)),
            Self::E4m3 => None,
        }
    }

    /// True if weight values have 4 bits.
    pub const fn is_int4(self) -> bool {
        matches!(self, Self::Int4 | Self::Int4Grouped)
    }

    /// Name of the format in kernel names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int8 => "int8",
            Self::E4m3 => "e4m3",
            Self::Int4 => "int4",
            Self::Int4Grouped => "int4_groups",
        }
    }
}

/// Granularity of the scales of input and weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScaleGranularity {
    /// Scale per row.
    Row,
    /// Scale per tensor.
    Tensor,
}

/// Accumulation mode of float8 matrix multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Float8Accumulation {
    /// Fast accumulation in the tensor-core registers, which have about 14 bits on Hopper. Fastest; XLA's default.
    Fast,
    /// Partial sums are promoted to f32 registers every few steps.
    Promoted,
}

/// Operation that is fused before the quantization of the input. Its result is rounded to the input's dtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
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

/// Linear layer y = f(p(x) · wᵀ) + addend whose operands p(x) and w are quantized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DynamicLinearSpec {
    /// Dtype of x and y.
    pub kind: Dtype,
    /// Storage format of the quantized operands.
    pub format: DynamicFormat,
    /// Granularity of the scales.
    pub granularity: ScaleGranularity,
    /// Accumulation mode for e4m3; integer accumulators are exact.
    pub accumulation: Float8Accumulation,
    /// Prologue p, applied to x before quantization.
    pub prologue: Prologue,
    /// Activation f of the epilogue.
    pub activation: Option<Activation>,
    /// True if a matrix of the shape of y is added last.
    pub has_addend: bool,
}
