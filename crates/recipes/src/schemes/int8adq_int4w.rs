//! `int8adq-int4w-symm`: 4-bit weights, one scale per output channel, and 8-bit activations, one scale per token.
//!
//! Both are symmetric over their full ranges: scales amax / 7.5 and amax / 127.5. Scales are computed in the dtype of
//! the tensor and stored in f32; quantized values are computed in f32. The integer matmul is multiplied by the token
//! scale, then by the channel scale, in f32, and rounded once.

use crate::format::{Format, Grouping};
use crate::{Dtype, MatmulMode, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// 4-bit weights with 8-bit activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Int8ActivationInt4Weight;

impl fmt::Display for Int8ActivationInt4Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("int8adq-int4w-symm")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["int8adq-int4w-symm"],
    about: "4-bit weights and 8-bit activations, a scale per output channel and per token",
    examples: &["int8adq-int4w-symm"],
    parse: |name| Some(Box::new(Int8ActivationInt4Weight::parse(name)?)),
};

impl Int8ActivationInt4Weight {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "int8adq-int4w-symm").then_some(Self)
    }
}

impl Scheme for Int8ActivationInt4Weight {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let symmetric = |bits| Format::symmetric(bits, Grouping::Row, dtype, Dtype::F32);
        Ok(QuantConfig::dynamic(dtype, symmetric(4), symmetric(8), MatmulMode::QuantizedValues(Dtype::F32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FloatType;
    use crate::Weight;

    #[test]
    fn scale_is_rounded_to_dtype() {
        let weight = Weight::new(1, 4, vec![1.0, -1.0, 0.2, 0.0], Dtype::Bf16);
        let quantized =
            Int8ActivationInt4Weight.quant_config(Dtype::Bf16, None).unwrap().quantize(&weight).unwrap().unwrap();
        assert_eq!(quantized.scales, [Dtype::Bf16.round(1.0 / 7.5)]);
        assert_eq!(quantized.codes(), [7, 0xF & -7i8 as u8, 1, 0]);
    }
}
