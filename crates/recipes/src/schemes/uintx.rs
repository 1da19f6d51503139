//! `uintx-{bits}-{group}[-hqq]`: weights of 1 to 8 bits in groups along K, unquantized activations.
//!
//! Without `-hqq` the range of a group is widened to include zero. The scale is the range over the largest quantized
//! value, and the zero point is the quantized zero, so that zero is exact: value = (q - zero point) * scale. With
//! `-hqq` scale and zero point are computed by half-quadratic quantization and stored in the dtype of the weight; only
//! 4-bit values start from an integer zero point. The layer multiplies dequantized values. torchao has no 8-bit variant
//! without `-hqq`; here it follows the general rule.

use crate::format::{Format, Grouping, ZeroPoint};
use crate::{Dtype, Element, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use calorimeter_case::parse_positive;
use std::fmt;

/// Weight-only quantization to 1 to 8 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uintx {
    bits: u8,
    group: u32,
    hqq: bool,
}

impl fmt::Display for Uintx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("uintx-{}-{}{}", self.bits, self.group, if self.hqq { "-hqq" } else { "" }))
    }
}

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["uintx-{1|2|3|4|5|6|7|8}-{group}[-hqq]"],
    about: "weights of 1 to 8 bits, a scale and a zero for each group along K; hqq optimizes the zeros",
    examples: &["uintx-2-64", "uintx-3-64", "uintx-4-64", "uintx-6-64", "uintx-4-64-hqq", "uintx-8-64-hqq"],
    parse: |name| Some(Box::new(Uintx::parse(name)?)),
};

impl Uintx {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("uintx-")?;
        let (rest, hqq) = rest.strip_suffix("-hqq").map_or((rest, false), |rest| (rest, true));
        let (bits, group) = rest.split_once('-')?;
        let bits = parse_positive(bits).filter(|bits| *bits <= 8)? as u8;
        Some(Self { bits, group: parse_positive(group)?, hqq })
    }
}

impl Scheme for Uintx {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let grouping = Grouping::Block(self.group);
        let weight = if self.hqq {
            Format::hqq(self.bits, grouping, dtype, dtype, ZeroPoint::AfterScale(Element::Float(dtype)))
        } else {
            Format::asymmetric(Element::Unsigned(self.bits), grouping, dtype)
        };
        Ok(QuantConfig::weight_only(dtype, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn zero_is_exact_for_every_width() {
        for bits in 1..=8 {
            let recipe = Uintx::parse(&format!("uintx-{bits}-32")).unwrap();
            let mut values = vec![5.0; 32];
            (values[3], values[9]) = (0.0, -2.0);
            let weight = Weight::new(1, 32, values, Dtype::Bf16);
            let quantized = recipe.quant_config(Dtype::Bf16, None).unwrap().quantize(&weight).unwrap().unwrap();
            assert_eq!(quantized.dequantize()[3], 0.0, "{recipe}");
        }
    }

    #[test]
    fn unaligned_groups_are_rejected() {
        let check = |name: &str, k| Uintx::parse(name).unwrap().quant_config(Dtype::F32, None).unwrap().check(32, k);
        assert_eq!(check("uintx-3-32", 64), Ok(()));
        assert_eq!(check("uintx-8-20", 80), Ok(()));
        for (name, k, size) in
            [("uintx-3-40", 80, 40), ("uintx-4-4294967264", 4096, 4_294_967_264), ("uintx-8-20-hqq", 80, 20)]
        {
            assert!(matches!(check(name, k), Err(RecipeError::GroupSize { group, .. }) if group == size), "{name}");
        }
    }
}
