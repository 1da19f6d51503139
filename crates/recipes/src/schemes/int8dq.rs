//! `int8dq`: 8-bit weights, one scale per output channel, and 8-bit activations, one scale per token, computed at run
//! time.
//!
//! The range of activations is -127..=127 and their smallest scale 1e-5; for f16 their scale is stored in f32. The
//! integer matmul is multiplied by the token scale, then by the channel scale, and rounded to the dtype of the token
//! scale after each. torchao's kernel for semi-structured weights applies the channel scale first and rounds to bf16;
//! here the order does not change.

use super::int8wo::Int8WeightOnly;
use crate::format::{Format, Grouping, QuantMethod};
use crate::{Dtype, MatmulMode, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity};
use std::fmt;

/// Int8 dynamic quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Int8Dynamic {
    /// Activations are always quantized.
    Always,
    /// Activations of a single token are not quantized, because decoding is bound by loading weights.
    PrefillOnly,
}

impl fmt::Display for Int8Dynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Always => "int8dq",
            Self::PrefillOnly => "int8dq_prefill_wo_decode",
        })
    }
}

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["int8dq", "int8dq_prefill_wo_decode"],
    about: "8-bit weights and activations, a scale per output channel and per token; \
            prefill_wo_decode does not quantize the activation of a single token",
    examples: &["int8dq", "int8dq_prefill_wo_decode"],
    parse: |name| Some(Box::new(Int8Dynamic::parse(name)?)),
};

impl Int8Dynamic {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            // `int8_rowwise` is the alias from torchao's accuracy tables.
            "int8dq" | "int8_rowwise" => Some(Self::Always),
            "int8dq_prefill_wo_decode" => Some(Self::PrefillOnly),
            _ => None,
        }
    }
}

impl Scheme for Int8Dynamic {
    fn supports_semi_structured(&self) -> bool {
        true
    }

    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let scale = if dtype == Dtype::F16 { Dtype::F32 } else { dtype };
        let method = QuantMethod::Symmetric { min: -127, max: 127, epsilon: 1e-5 };
        let input = Format::symmetric(8, Grouping::Row, dtype, scale).with_method(method);
        let weight = Int8WeightOnly::weight_format(dtype);
        let dynamic = QuantConfig::dynamic(dtype, weight, input, MatmulMode::QuantizedValues(scale));
        Ok(QuantConfig { skip_input_for_single_row: *self == Self::PrefillOnly, ..dynamic })
    }
}
