//! Weights in codes that kernels multiply without unpacking them first.

use crate::{Dtype, Element};

/// What a weight's codes mean for its numbers besides their scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CodeZero {
    /// Nothing: a number is a code times the scale.
    Nothing,
    /// (code - zero) times the scale; the zeros are of this type.
    InSteps(Element),
    /// (code - middle of the range) times the scale, plus the zero, which is of this type.
    InUnits(Element),
}

/// What the codes of a packed weight w[n, k] are. Those of a row lie densely in words, the first in the lowest bits, and are
/// filled up to whole groups and to 32 codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WeightCodes {
    /// What a code stands for: an integer or a float of up to 8 bits. e4m3 is without NaN.
    pub number: Element,
    /// Numbers along k that share a scale, and a zero where there are any; without it a row shares one scale.
    pub group: Option<usize>,
    /// The type of the scales. They lie row by row without gaps, as zeros do.
    pub scale: Element,
    /// What is taken off a code or added.
    pub zero: CodeZero,
}

/// What is multiplied with the numbers of a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InputNumbers {
    /// The input as it is.
    AsTheyAre,
    /// The nearest numbers of e4m3 or e2m1 times a power of two for each 32 of a row, rounded up, so that none saturates.
    Mx(Element),
    /// The nearest numbers of e2m1 times an e4m3 scale for each 16 of a row. A scale of the whole input, and one of the
    /// whole weight, multiply the sums.
    Nvfp4,
}

/// Types of a product with a packed weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PackedForm {
    /// The type of x and y.
    pub kind: Dtype,
    /// What the weight's codes are.
    pub codes: WeightCodes,
    /// What is multiplied with their numbers.
    pub input: InputNumbers,
}

impl WeightCodes {
    /// Integers of a byte, times one scale for each row.
    pub fn int8(scale: Dtype) -> Self {
        Self { number: Element::Signed(8), group: None, scale: Element::Float(scale), zero: CodeZero::Nothing }
    }

    /// e4m3, times one f32 scale for each row.
    pub fn e4m3() -> Self {
        Self { number: Element::E4m3, ..Self::int8(Dtype::F32) }
    }

    /// 4 bits around the middle of their range, with zeros in units, scales and zeros of one type.
    pub fn int4(group: usize, scale: Dtype) -> Self {
        let scale = Element::Float(scale);
        Self { number: Element::Unsigned(4), group: Some(group), scale, zero: CodeZero::InUnits(scale) }
    }

    /// The codes of OCP microscaling.
    pub fn mx(number: Element) -> Self {
        Self { number, group: Some(32), scale: Element::E8m0, zero: CodeZero::Nothing }
    }

    /// Those of NVFP4.
    pub fn nvfp4() -> Self {
        Self { number: Element::E2m1, group: Some(16), scale: Element::E4m3, zero: CodeZero::Nothing }
    }
}

impl PackedForm {
    /// A weight whose numbers are multiplied with an input as it is.
    pub fn weight_only(kind: Dtype, codes: WeightCodes) -> Self {
        Self { kind, codes, input: InputNumbers::AsTheyAre }
    }
}
