//! What kinds of products there are.

use std::fmt;

use super::{Epilogue, Float8Sums, WeightLayout};
use crate::Dtype;

/// What a product multiplies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Factors {
    /// Floats as they are.
    Whole(Dtype),
    /// f32 rounded to TF32, which tensor cores multiply.
    Tf32,
    /// Codes of e4m3.
    E4m3(Float8Sums),
}

impl Factors {
    /// Size of one of them.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Whole(kind) => kind.width(),
            Self::Tf32 => Dtype::F32.width(),
            Self::E4m3(_) => 1,
        }
    }
}

/// A product without its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) factors: Factors,
    pub(super) output: Dtype,
    /// Whether each sum is multiplied by a scale of its row and one of its column.
    pub(super) scaled: bool,
    pub(super) weight: WeightLayout,
    pub(super) epilogue: Epilogue,
}

impl Form {
    /// The product y = x · wᵀ and nothing else.
    pub(super) fn plain(factors: Factors, output: Dtype) -> Self {
        Self { factors, output, scaled: false, weight: WeightLayout::AlongK, epilogue: Epilogue::Nothing }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled = if self.scaled { "scaled " } else { "" };
        match self.factors {
            Factors::Whole(kind) if kind == self.output => write!(f, "{scaled}{kind}"),
            Factors::Whole(kind) => write!(f, "{scaled}{kind} to {}", self.output),
            Factors::Tf32 => write!(f, "{scaled}TF32"),
            Factors::E4m3(_) => write!(f, "{scaled}e4m3 to {}", self.output),
        }?;
        f.write_str(match self.epilogue {
            Epilogue::Nothing => "",
            Epilogue::Bias => " with bias",
            Epilogue::BiasRelu => " with bias and ReLU",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_told_by_its_types() {
        let form = |factors, output, scaled| Form { scaled, ..Form::plain(factors, output) }.to_string();
        assert_eq!(form(Factors::Whole(Dtype::Bf16), Dtype::Bf16, false), "bf16");
        assert_eq!(form(Factors::Whole(Dtype::Bf16), Dtype::F32, false), "bf16 to f32");
        assert_eq!(form(Factors::Tf32, Dtype::F32, false), "TF32");
        assert_eq!(form(Factors::E4m3(Float8Sums::Fast), Dtype::F32, true), "scaled e4m3 to f32");
        let plain = Form::plain(Factors::Whole(Dtype::F16), Dtype::F16);
        assert_eq!(Form { epilogue: Epilogue::BiasRelu, ..plain }.to_string(), "f16 with bias and ReLU");
    }
}
