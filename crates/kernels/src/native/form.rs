//! What kinds of products there are.

use std::fmt;

use super::{
    Epilogue, Float8Sums, InputLayout, LinearShape, WeightLayout,
    quantize_blocks::{SIDE, TOGETHER},
};
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
    /// Codes of e5m2 times codes of e4m3.
    E5m2ByE4m3(Float8Sums),
    /// Integers of a byte, whose sums are integers too.
    Int8,
}

/// What a product writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Floats.
    Float(Dtype),
    /// Integers of 32 bits.
    Int32,
}

impl Written {
    /// Size of one of them.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Float(kind) => kind.width(),
            Self::Int32 => 4,
        }
    }
}

/// Scales that each sum is multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scales {
    /// None.
    Nothing,
    /// One of its row and one of its column.
    Lines,
    /// One of x and one of w.
    Tensors,
    /// One for 128 numbers of a row of x, and one for 128 x 128 of w, as [`super::Quantize::squares`] writes them.
    Blocks,
}

impl Scales {
    /// How many there are of x and of w.
    pub(super) fn counts(self, LinearShape { m, k, n }: LinearShape) -> [usize; 2] {
        match self {
            Self::Nothing => [0; 2],
            Self::Lines => [m, n],
            Self::Tensors => [1; 2],
            Self::Blocks => {
                let [along, of_w] = [k, n].map(|size| size.div_ceil(SIDE));
                [along * m.next_multiple_of(TOGETHER), along.next_multiple_of(TOGETHER) * of_w]
            }
        }
    }
}

impl Factors {
    /// Size of one of them.
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Whole(kind) => kind.width(),
            Self::Tf32 => Dtype::F32.width(),
            Self::E4m3(_) | Self::E5m2ByE4m3(_) | Self::Int8 => 1,
        }
    }
}

/// A product without its sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) factors: Factors,
    pub(super) output: Written,
    pub(super) scales: Scales,
    pub(super) input: InputLayout,
    pub(super) weight: WeightLayout,
    pub(super) epilogue: Epilogue,
}

impl Form {
    /// The product y = x · wᵀ and nothing else.
    pub(super) fn plain(factors: Factors, output: Dtype) -> Self {
        Self::of(factors, Written::Float(output))
    }

    /// The same of integers.
    pub(super) fn int8() -> Self {
        Self::of(Factors::Int8, Written::Int32)
    }

    fn of(factors: Factors, output: Written) -> Self {
        let (input, weight) = (InputLayout::AlongK, WeightLayout::AlongK);
        Self { factors, output, scales: Scales::Nothing, input, weight, epilogue: Epilogue::Nothing }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled = if self.scales == Scales::Nothing { "" } else { "scaled " };
        let factors = match self.factors {
            Factors::Whole(kind) => kind.to_string(),
            Factors::Tf32 => "TF32".into(),
            Factors::E4m3(_) => "e4m3".into(),
            Factors::E5m2ByE4m3(_) => "e5m2 by e4m3".into(),
            Factors::Int8 => "int8".into(),
        };
        write!(f, "{scaled}{factors}")?;
        match (self.factors, self.output) {
            (Factors::Whole(kind), Written::Float(output)) if kind == output => Ok(()),
            (Factors::Tf32, _) => Ok(()),
            (_, Written::Float(output)) => write!(f, " to {output}"),
            (_, Written::Int32) => write!(f, " to s32"),
        }?;
        f.write_str(match self.epilogue {
            Epilogue::Nothing => "",
            Epilogue::Bias => " with bias",
            Epilogue::Relu => " with ReLU",
            Epilogue::BiasRelu => " with bias and ReLU",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_told_by_its_types() {
        let form = |factors, output, scaled| {
            let scales = if scaled { Scales::Lines } else { Scales::Nothing };
            Form { scales, ..Form::plain(factors, output) }.to_string()
        };
        assert_eq!(form(Factors::Whole(Dtype::Bf16), Dtype::Bf16, false), "bf16");
        assert_eq!(form(Factors::Whole(Dtype::Bf16), Dtype::F32, false), "bf16 to f32");
        assert_eq!(form(Factors::Tf32, Dtype::F32, false), "TF32");
        assert_eq!(form(Factors::E4m3(Float8Sums::Fast), Dtype::F32, true), "scaled e4m3 to f32");
        assert_eq!(Form::int8().to_string(), "int8 to s32");
        let plain = Form::plain(Factors::Whole(Dtype::F16), Dtype::F16);
        assert_eq!(Form { epilogue: Epilogue::BiasRelu, ..plain }.to_string(), "f16 with bias and ReLU");
    }
}
