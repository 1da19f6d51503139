//! `mxfp8` and `mxfp4`: OCP microscaling of weights and activations, a power-of-two scale for each block of 32 along K.
//!
//! 8-bit values are e4m3, 4-bit values e2m1. The scale is amax over the largest value of the format, rounded up to a
//! power of two, so that no value saturates. torchao 0.14.1 rounds down in its inference recipe, see
//! [`MxScaling::Floor`], and computes the rounded-up exponent by a logarithm in f32, which misses ratios a few ULP
//! above a power of two. The layer multiplies dequantized values, which are exact in f32, and rounds once.

use crate::format::{Format, MxScaling};
use crate::{Dtype, Element, MatmulMode, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity, TrainingRecipe};
use std::fmt;

/// OCP microscaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Mx {
    /// 8-bit values.
    Fp8,
    /// 4-bit values.
    Fp4,
}

impl fmt::Display for Mx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fp8 => "mxfp8",
            Self::Fp4 => "mxfp4",
        })
    }
}

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["mxfp8", "mxfp4"],
    about: "8-bit (e4m3) or 4-bit (e2m1) float weights and activations, a power of two for each \
            block of 32",
    examples: &["mxfp8", "mxfp4"],
    parse: |name| Some(Box::new(Mx::parse(name)?)),
};

impl Mx {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "mxfp8" => Some(Self::Fp8),
            "mxfp4" => Some(Self::Fp4),
            _ => None,
        }
    }
}

impl Scheme for Mx {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let element = match self {
            Self::Fp8 => Element::E4m3,
            Self::Fp4 => Element::E2m1,
        };
        let format = Format::mx(element, MxScaling::Ceil);
        Ok(QuantConfig::dynamic(dtype, format, format, MatmulMode::Values))
    }

    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        match self {
            Self::Fp8 => Ok(Some(TrainingRecipe::MXFP8)),
            Self::Fp4 => Err(RecipeError::Unsupported("4-bit training is not supported; use mxfp8".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn largest_value_does_not_saturate() {
        let mut values = vec![0.0; 32];
        values[7] = 449.0;
        let weight = Weight::new(1, 32, values, Dtype::F32);
        let quantized = Mx::Fp8.quant_config(Dtype::F32, None).unwrap().quantize(&weight).unwrap().unwrap();
        assert_eq!((quantized.scales[0], quantized.dequantize()[7]), (2.0, 448.0));
    }
}
