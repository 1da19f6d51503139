//! `float8wo`: 8-bit float weights (e4m3), one scale per output channel, unquantized activations.
//!
//! The scale is amax / 448, rounded to the dtype of the weight and stored in f32; quotients are rounded to the nearest
//! e4m3 value. There is no smallest scale: a row of zeros has scale zero and becomes zero, where torchao has a NaN. The
//! layer multiplies dequantized values.

use crate::format::{Format, Grouping};
use crate::{Dtype, Element, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// Float8 weight-only quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Float8WeightOnly;

impl fmt::Display for Float8WeightOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("float8wo")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["float8wo"],
    about: "8-bit float weights (e4m3), one scale per output channel; unquantized activations",
    examples: &["float8wo"],
    parse: |name| Some(Box::new(Float8WeightOnly::parse(name)?)),
};

impl Float8WeightOnly {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "float8wo").then_some(Self)
    }
}

impl Scheme for Float8WeightOnly {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        Ok(QuantConfig::weight_only(dtype, Format::float8(Element::E4m3, Grouping::Row, dtype)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn row_amax_becomes_448() {
        let weight = Weight::new(2, 4, vec![0.0, 0.0, 0.0, 0.0, 896.0, -3.0, 0.0, 0.001], Dtype::Bf16);
        let quantized = Float8WeightOnly.quant_config(Dtype::Bf16, None).unwrap().quantize(&weight).unwrap().unwrap();
        assert_eq!(quantized.scales, [0.0, 2.0]);
        assert_eq!(quantized.dequantize(), [0.0, 0.0, 0.0, 0.0, 896.0, -3.0, 0.0, 0.0]);
    }
}
