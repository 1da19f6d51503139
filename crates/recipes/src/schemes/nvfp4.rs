//! `nvfp4`: 4-bit floats (e2m1) for weights and activations, an e4m3 scale for each block of 16 along K, and an f32
//! scale for each of the two tensors.
//!
//! The tensor scale maps amax to 448 * 6. A block scale is amax / 6 over the tensor scale, at least the smallest normal
//! value of e4m3. Values are divided by the product of both scales. The layer multiplies quantized values with block
//! scales applied, rounds to the dtype, and then multiplies by the product of the tensor scales.

use crate::format::Format;
use crate::{Dtype, MatmulMode, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// 4-bit floats of NVIDIA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Nvfp4;

impl fmt::Display for Nvfp4 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("nvfp4")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["nvfp4"],
    about: "4-bit float weights and activations (e2m1), an e4m3 scale for each block of 16, an f32 \
            scale for each tensor",
    examples: &["nvfp4"],
    parse: |name| Some(Box::new(Nvfp4::parse(name)?)),
};

impl Nvfp4 {
    /// Parses a name of the recipe.
    pub fn parse(name: &str) -> Option<Self> {
        (name == "nvfp4").then_some(Self)
    }
}

impl Scheme for Nvfp4 {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        Ok(QuantConfig::dynamic(dtype, Format::nvfp4(), Format::nvfp4(), MatmulMode::Values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn tensor_amax_gets_largest_scale_and_value() {
        let values = (0..32).map(|i| if i == 20 { -5376.0 } else { i as f32 }).collect();
        let weight = Weight::new(1, 32, values, Dtype::Bf16);
        let quantized = Nvfp4.quant_config(Dtype::Bf16, None).unwrap().quantize(&weight).unwrap().unwrap();
        assert_eq!((quantized.outer_scales[0], quantized.scales[1]), (2.0, 448.0));
        assert_eq!(quantized.dequantize()[20], -5376.0);
    }
}
