//! Weights of which two of every four numbers along k are kept.

use crate::{Activation, Dtype, DynamicCodes, DynamicForm, Float8Sums, Prologue, SharedScale};

/// What the kept numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeptCodes {
    /// Numbers of the layer's type.
    Numbers,
    /// 4 bits around zero, times a scale of the layer's type for each 128 numbers along k, kept or not.
    Int4,
    /// Codes that are multiplied with those of the input, as a [`DynamicForm`] has them; one of half bytes has no product.
    Dynamic(DynamicCodes, SharedScale),
}

/// A layer y = f(p(x) · wᵀ) + added with such a weight. Only codes that are multiplied with codes have something before and
/// after the product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseForm {
    /// The type of x and y.
    pub kind: Dtype,
    /// What the kept numbers are.
    pub codes: KeptCodes,
    /// What x goes through first.
    pub prologue: Prologue,
    /// What follows the product.
    pub activation: Option<Activation>,
    /// Whether a matrix like y is added at the end.
    pub added: bool,
}

impl SparseForm {
    /// The same layer with a dense weight, if its input is turned into codes.
    pub fn dynamic(self) -> Option<DynamicForm> {
        let Self { kind, codes, prologue, activation, added } = self;
        match codes {
            KeptCodes::Dynamic(codes, shared) => {
                let sums = Float8Sums::Promoted;
                Some(DynamicForm { kind, codes, shared, sums, prologue, activation, added })
            }
            KeptCodes::Numbers | KeptCodes::Int4 => None,
        }
    }

    /// Bits of a kept number.
    pub const fn bits(self) -> usize {
        match self.codes {
            KeptCodes::Numbers => 8 * self.kind.width(),
            KeptCodes::Int4 => 4,
            KeptCodes::Dynamic(..) => 8,
        }
    }
}
