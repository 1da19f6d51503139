//! `q8_0` and `q4_0`: weights in the formats of GGUF files, unquantized activations.
//!
//! The arithmetic is that of the reference quantization of ggml, computed in f32 for every dtype of the model. A block
//! consists of 32 values along K, and its scale d is stored in f16. The inverse scale is the f32 inverse of d before d
//! is rounded to f16.
//!
//! | recipe | d | quantized value |
//! |---|---|---|
//! | `q8_0` | amax / 127 | x / d rounded to the nearest integer, ties away from zero |
//! | `q4_0` | max / -8, where max is the first value with the largest magnitude | x / d + 8.5 truncated, at most 15, minus 8 |
//!
//! The layer multiplies dequantized values. K is padded with zeros to whole blocks, where ggml rejects the weight. A block
//! whose scale exceeds f16 is an error. The names are the names of the formats in lower case.

use crate::format::Format;
use crate::{Dtype, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// Weight-only quantization to a format of ggml.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Ggml {
    /// 8-bit values.
    Q8_0,
    /// 4-bit values.
    Q4_0,
}

impl fmt::Display for Ggml {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        })
    }
}

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["q8_0", "q4_0"],
    about: "8-bit or 4-bit weights of GGUF files, an f16 scale for each block of 32",
    examples: &["q8_0", "q4_0"],
    parse: |name| Some(Box::new(Ggml::parse(name)?)),
};

impl Ggml {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "q8_0" => Some(Self::Q8_0),
            "q4_0" => Some(Self::Q4_0),
            _ => None,
        }
    }
}

impl Scheme for Ggml {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let bits = match self {
            Self::Q8_0 => 8,
            Self::Q4_0 => 4,
        };
        Ok(QuantConfig::weight_only(dtype, Format::ggml(bits)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Weight;

    #[test]
    fn last_block_is_padded_with_zeros() {
        let values: Vec<f32> = (0..40).map(|i| (i as f32 * 0.7).sin()).collect();
        let padded: Vec<f32> = values.iter().copied().chain([0.0; 24]).collect();
        for recipe in [Ggml::Q8_0, Ggml::Q4_0] {
            let config = recipe.quant_config(Dtype::F32, None).unwrap();
            let quantize = |values: &[f32]| {
                let weight = Weight::new(1, values.len(), values.to_vec(), Dtype::F32);
                config.quantize(&weight).unwrap().unwrap()
            };
            let (ragged, whole) = (quantize(&values), quantize(&padded));
            assert_eq!((ragged.codes, ragged.scales), (whole.codes, whole.scales), "{recipe}");
        }
    }

    #[test]
    fn scale_beyond_f16_is_an_error() {
        for (recipe, largest) in [(Ggml::Q8_0, 127.0 * 65504.0), (Ggml::Q4_0, 8.0 * 65504.0)] {
            let config = recipe.quant_config(Dtype::F32, None).unwrap();
            let quantize = |value| config.quantize(&Weight::new(1, 32, vec![value; 32], Dtype::F32));
            assert!(quantize(largest).is_ok(), "{recipe}");
            assert_eq!(quantize(1.001 * largest), Err(RecipeError::NotFinite { row: 0, group: 0 }), "{recipe}");
        }
    }
}
