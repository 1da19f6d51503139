//! Weights with 2:4 sparsity along k.

use crate::{Activation, Dtype, DynamicFormat, DynamicLinearSpec, Float8Accumulation, Prologue, ScaleGranularity};

/// Storage format of the nonzero weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SparseWeightFormat {
    /// Floats of the layer's dtype.
    Float,
    /// Symmetric int4 with one scale of the layer's dtype per 128 elements along k, zeros included.
    Int4,
    /// Quantized values for a quantized input, as in [`DynamicLinearSpec`]; int4 is not supported.
    Dynamic(DynamicFormat, ScaleGranularity),
}

/// Linear layer y = f(p(x) · wᵀ) + addend with a 2:4 sparse weight. Prologue and epilogue are available only with a
/// quantized input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseLinearSpec {
    /// Dtype of x and y.
    pub kind: Dtype,
    /// Storage format of the nonzero weights.
    pub weight: SparseWeightFormat,
    /// Prologue p, applied to x before quantization.
    pub prologue: Prologue,
    /// Activation f of the epilogue.
    pub activation: Option<Activation>,
    /// True if a matrix of the shape of y is added last.
    pub has_addend: bool,
}

impl SparseLinearSpec {
    /// Returns the dense layer with a quantized input; `None` if the input is not quantized.
    pub fn dynamic(self) -> Option<DynamicLinearSpec> {
        let Self { kind, weight: codes, prologue, activation, has_addend: added } = self;
        match codes {
            SparseWeightFormat::Dynamic(codes, shared) => {
                let sums = Float8Accumulation::Promoted;
                Some(DynamicLinearSpec {
                    kind,
                    format: codes,
                    granularity: shared,
                    accumulation: sums,
                    prologue,
                    activation,
                    has_addend: added,
                })
            }
            SparseWeightFormat::Float | SparseWeightFormat::Int4 => None,
        }
    }

    /// Bits of a nonzero weight.
    pub const fn bits(self) -> usize {
        match self.weight {
            SparseWeightFormat::Float => 8 * self.kind.width(),
            SparseWeightFormat::Int4 => 4,
            SparseWeightFormat::Dynamic(..) => 8,
        }
    }
}
