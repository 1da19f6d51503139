//! `int8_dynamic_activation_intx_weight-{bits}-{group}-{true|false}`: weights of 1 to 8 bits in groups along K and
//! 8-bit activations, both dequantized before the matmul.
//!
//! `true`: the range of a group is widened to include zero and has a zero point, itself a quantized value, so that zero
//! is exact. `false`: symmetric. Scales are in the dtype of the weight. The activation always has one zero point per
//! token. torchao's benchmarks treat `false` as true, and run in f32 only.

use crate::format::{Format, Grouping};
use crate::{Dtype, Element, MatmulMode, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use calorimeter_case::parse_positive;
use std::fmt;

const PREFIX: &str = "int8_dynamic_activation_intx_weight-";

/// Int8 activations with weights of 1 to 8 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntxDynamic {
    bits: u8,
    group: u32,
    asymmetric: bool,
}

impl fmt::Display for IntxDynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{PREFIX}{}-{}-{}", self.bits, self.group, self.asymmetric))
    }
}

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["int8_dynamic_activation_intx_weight-{1|2|3|4|5|6|7|8}-{group}-{true|false}"],
    about: "weights of 1 to 8 bits in groups along K, asymmetric or not, and asymmetric 8-bit \
            activations per token",
    examples: &["int8_dynamic_activation_intx_weight-4-32-true", "int8_dynamic_activation_intx_weight-4-32-false"],
    parse: |name| Some(Box::new(IntxDynamic::parse(name)?)),
};

impl IntxDynamic {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        let (bits, rest) = name.strip_prefix(PREFIX)?.split_once('-')?;
        let (group, asymmetric) = rest.split_once('-')?;
        let bits = parse_positive(bits).filter(|bits| *bits <= 8)? as u8;
        Some(Self { bits, group: parse_positive(group)?, asymmetric: asymmetric.parse().ok()? })
    }
}

impl Scheme for IntxDynamic {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let grouping = Grouping::Block(self.group);
        let weight = if self.asymmetric {
            Format::asymmetric(Element::Signed(self.bits), grouping, dtype)
        } else {
            Format::symmetric(self.bits, grouping, dtype, dtype)
        };
        let input = Format::asymmetric(Element::Signed(8), Grouping::Row, dtype);
        Ok(QuantConfig::dynamic(dtype, weight, input, MatmulMode::Values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementCodec;
    use crate::Weight;

    #[test]
    fn positive_weights_use_full_range_with_zero_point() {
        let codes = |name: &str| {
            let weight = Weight::new(1, 32, (0..32).map(|i| i as f32).collect(), Dtype::F32);
            let config = IntxDynamic::parse(name).unwrap().quant_config(Dtype::F32, None).unwrap();
            let quantized = config.quantize(&weight).unwrap().unwrap();
            let numbers: Vec<f32> =
                quantized.codes().iter().map(|&c| quantized.format.element.decode(c.into())).collect();
            (numbers[0], numbers[31])
        };
        assert_eq!(codes("int8_dynamic_activation_intx_weight-4-32-true"), (-8.0, 7.0));
        assert_eq!(codes("int8_dynamic_activation_intx_weight-4-32-false"), (0.0, 7.0));
    }
}
