//! `fp6`: weights of 3 exponent and 2 mantissa bits, one scale per output channel, activations untouched.
//!
//! The scale is amax / 28 in f32, amax taken as at least 1e-12, and then rounded to the weight's dtype; what it divides is
//! rounded to the nearest of the format's numbers and saturates at 28. A row whose scale vanishes in the dtype becomes
//! zero where torchao has a NaN. The layer multiplies with the numbers.

use crate::format::{Format, Grouping, Method};
use crate::{Dtype, Element, Family, RecipeError, Scheme, Sparsity, Treatment};
use std::fmt;

/// 6-bit floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fp6;

impl fmt::Display for Fp6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("fp6")
    }
}

/// Its names.
pub static FAMILY: Family = Family {
    spellings: &["fp6"],
    about: "6-bit float weights (e3m2), one scale per output channel; activations untouched",
    typical: &["fp6"],
    parse: |name| Some(Box::new(Fp6::parse(name)?)),
};

impl Fp6 {
    /// Reads exactly one of its names.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "fp6").then_some(Self)
    }
}

impl Scheme for Fp6 {
    fn treatment(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        let format = Format { scale: Element::Float(dtype), ..Format::float8(Element::E3m2, Grouping::Row, dtype) };
        Ok(Treatment::weight_only(dtype, format.with_method(Method::Floats { epsilon: 1e-12 })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn the_largest_of_a_row_becomes_28() {
        let weight = Weight::new(2, 4, vec![56.0, -2.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0], Dtype::F16);
        let quantized = Fp6.treatment(Dtype::F16, None).unwrap().quantize(&weight).unwrap().unwrap();
        assert_eq!(quantized.scales, [2.0, 0.0]);
        assert_eq!(quantized.dequantize(), [56.0, -2.0, 0.0, 0.125, 0.0, 0.0, 0.0, 0.0]);
    }
}
