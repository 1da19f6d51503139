//! `int8adq-int4w-symm`: 4-bit weights, one scale per output channel, and 8-bit activations, one scale per token.
//!
//! Both are symmetric over their full ranges: scales amax / 7.5 and amax / 127.5. Scales are computed in the dtype of
//! the tensor and stored in f32; quantized values are computed in f32. The integer matmul is multiplied by the token
//! scale, then by the channel scale, in f32, and rounded once.

use crate::format::{Format, Grouping};
use crate::{Dtype, Family, Products, RecipeError, Scheme, Sparsity, Treatment};
use std::fmt;

/// 4-bit weights with 8-bit activations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Int8Int4;

impl fmt::Display for Int8Int4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("int8adq-int4w-symm")
    }
}

/// Registration of the recipe.
pub static FAMILY: Family = Family {
    spellings: &["int8adq-int4w-symm"],
    about: "4-bit weights and 8-bit activations, a scale per output channel and per token",
    typical: &["int8adq-int4w-symm"],
    parse: |name| Some(Box::new(Int8Int4::parse(name)?)),
};

impl Int8Int4 {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "int8adq-int4w-symm").then_some(Self)
    }
}

impl Scheme for Int8Int4 {
    fn treatment(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        let symmetric = |bits| Format::symmetric(bits, Grouping::Row, dtype, Dtype::F32);
        Ok(Treatment::dynamic(dtype, symmetric(4), symmetric(8), Products::Codes(Dtype::F32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FloatType;
    use crate::Weight;

    #[test]
    fn codes_are_found_in_f32_under_a_scale_of_the_dtype() {
        let weight = Weight::new(1, 4, vec![1.0, -1.0, 0.2, 0.0], Dtype::Bf16);
        let quantized = Int8Int4.treatment(Dtype::Bf16, None).unwrap().quantize(&weight).unwrap().unwrap();
        assert_eq!(quantized.scales, [Dtype::Bf16.round(1.0 / 7.5)]);
        assert_eq!(quantized.codes(), [7, 0xF & -7i8 as u8, 1, 0]);
    }
}
