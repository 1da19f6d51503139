//! `int4wo-{group}[-hqq]`: 4-bit weights in groups along K, unquantized activations.
//!
//! Without `-hqq`, a group with range min to max has `scale = (max - min) / 15`, at least 1e-6, and
//! `zero = min + 8 * scale`, every step rounded to the dtype of the weight; 0 itself need not be representable. A value
//! is `(q - 8) * scale + zero`. With `-hqq` the zero point is optimized for a sparse error, and scale and zero point are stored in bf16 for
//! every dtype. The layer multiplies dequantized values. K is padded with zeros to whole groups.

use crate::format::{Format, Grouping, ZeroPoint};
use crate::{Dtype, Element, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// Group sizes of tinygemm's kernel.
const GROUP_SIZES: [u32; 4] = [32, 64, 128, 256];

/// Int4 weight-only quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Int4WeightOnly {
    group: u32,
    hqq: bool,
}

impl fmt::Display for Int4WeightOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("int4wo-{}{}", self.group, if self.hqq { "-hqq" } else { "" }))
    }
}

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["int4wo-{32|64|128|256}[-hqq]"],
    about: "4-bit weights, a scale and a zero for each group along K; hqq optimizes the zeros",
    examples: &["int4wo-32", "int4wo-128", "int4wo-256", "int4wo-32-hqq", "int4wo-128-hqq"],
    parse: |name| Some(Box::new(Int4WeightOnly::parse(name)?)),
};

impl Int4WeightOnly {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        // Alias from torchao's accuracy tables.
        if name == "int4_groupwise_hqq_weight_only" {
            return Some(Self { group: 32, hqq: true });
        }
        let rest = name.strip_prefix("int4wo-")?;
        let (group, hqq) = rest.strip_suffix("-hqq").map_or((rest, false), |group| (group, true));
        let group = GROUP_SIZES.into_iter().find(|known| known.to_string() == group)?;
        Some(Self { group, hqq })
    }
}

impl Scheme for Int4WeightOnly {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let weight = if self.hqq {
            let zero = ZeroPoint::AfterScale(Element::Float(Dtype::Bf16));
            Format::hqq(4, Grouping::Block(self.group), dtype, Dtype::Bf16, zero)
        } else {
            Format::tinygemm(Grouping::Block(self.group), dtype)
        };
        Ok(QuantConfig::weight_only(dtype, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn sixteen_equidistant_values_are_exact() {
        let values: Vec<f32> = (0..32).map(|i| 3.0 + (i % 16) as f32).collect();
        let config = Int4WeightOnly::parse("int4wo-32").unwrap().quant_config(Dtype::F32, None).unwrap();
        let weight = Weight::new(1, 32, values.clone(), Dtype::F32);
        let quantized = config.quantize(&weight).unwrap().unwrap();
        assert_eq!((quantized.scales[0], quantized.zeros[0]), (1.0, 11.0));
        assert_eq!(quantized.dequantize(), values);
    }
}
