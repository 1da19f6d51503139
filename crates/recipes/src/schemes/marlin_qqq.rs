//! `marlin-qqq`: 4-bit weights in groups of 128 along K and 8-bit activations, one scale per token.
//!
//! The scale of a group is amax * 2/15. The scale of a row maps its largest dequantized value to 127, and group scales
//! are stored relative to it, so that a 4-bit value times its group scale rounds to an int8 value. If K is a single
//! group, the row scale is amax / 7 / 16 and the group scale 16. Each step is rounded to the dtype of the weight. The
//! activation is symmetric over -127..=127 with a scale of at least 1e-5, stored in f32. The integer matmul is
//! multiplied by the token scale, then by the row scale, in f32, and rounded once.

use crate::format::{Format, Grouping, QuantMethod};
use crate::{Dtype, MatmulMode, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// QQQ on Marlin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MarlinQqq;

impl fmt::Display for MarlinQqq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("marlin-qqq")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["marlin-qqq"],
    about: "4-bit weights in groups of 128 along K and 8-bit activations, multiplied as 8-bit integers",
    examples: &["marlin-qqq"],
    parse: |name| Some(Box::new(MarlinQqq::parse(name)?)),
};

impl MarlinQqq {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "marlin-qqq").then_some(Self)
    }
}

impl Scheme for MarlinQqq {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let method = QuantMethod::Symmetric { min: -127, max: 127, epsilon: 1e-5 };
        let input = Format::symmetric(8, Grouping::Row, dtype, Dtype::F32).with_method(method);
        let weight = Format::qqq(Grouping::Block(128), dtype);
        Ok(QuantConfig::dynamic(dtype, weight, input, MatmulMode::QuantizedValues(Dtype::F32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn values_are_int8_multiples_of_row_scale() {
        for k in [128, 256] {
            let values: Vec<f32> = (0..k).map(|i| ((i * 37) % 101) as f32 - 50.0).collect();
            let weight = Weight::new(1, k, values, Dtype::F32);
            let quantized = MarlinQqq.quant_config(Dtype::F32, None).unwrap().quantize(&weight).unwrap().unwrap();
            let steps: Vec<f32> = quantized.dequantize().iter().map(|x| x / quantized.outer_scales[0]).collect();
            assert!(steps.iter().all(|x| (x - x.round()).abs() < 1e-4 && x.abs() < 127.5), "{k}");
        }
    }
}
