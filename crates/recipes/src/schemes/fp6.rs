//! `fp6`: weights with 3 exponent and 2 mantissa bits, one scale per output channel, unquantized activations.
//!
//! The scale is max(amax, 1e-12) / 28 in f32, then rounded to the dtype of the weight; quotients are rounded to the
//! nearest e3m2 value and saturate at 28. A row whose scale underflows in the dtype becomes zero, where torchao has a
//! NaN. The layer multiplies dequantized values.

use crate::format::{Format, Grouping, QuantMethod};
use crate::{Dtype, Element, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// 6-bit float weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fp6;

impl fmt::Display for Fp6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("fp6")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["fp6"],
    about: "6-bit float weights (e3m2), one scale per output channel; unquantized activations",
    examples: &["fp6"],
    parse: |name| Some(Box::new(Fp6::parse(name)?)),
};

impl Fp6 {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "fp6").then_some(Self)
    }
}

impl Scheme for Fp6 {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let format = Format { scale: Element::Float(dtype), ..Format::float8(Element::E3m2, Grouping::Row, dtype) };
        Ok(QuantConfig::weight_only(dtype, format.with_method(QuantMethod::Floats { epsilon: 1e-12 })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn row_amax_becomes_28() {
        let weight = Weight::new(2, 4, vec![56.0, -2.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0], Dtype::F16);
        let quantized = Fp6.quant_config(Dtype::F16, None).unwrap().quantize(&weight).unwrap().unwrap();
        assert_eq!(quantized.scales, [2.0, 0.0]);
        assert_eq!(quantized.dequantize(), [56.0, -2.0, 0.0, 0.125, 0.0, 0.0, 0.0, 0.0]);
    }
}
