//! `float8dq[-tensor|-row][-fast]`: 8-bit float weights and activations; scales of activations are computed at run
//! time.
//!
//! The default is `-tensor`: one scale for the weight and one for the activation. `-row` has a scale per output channel
//! and per token. Every scale is amax over the largest value of the format, as in `float8wo`. Weights and activations
//! are e4m3; with semi-structured sparsity the activation is e5m2 and scales are always per row. The matmul of the
//! quantized values is multiplied by the activation scale, then by the weight scale, in f32, and rounded once. `-fast`
//! allows fast accumulation, the default of torch: sums may stay in the accumulators of tensor cores instead of f32.

use crate::format::{Format, Grouping};
use crate::{
    Dtype, Element, MatmulMode, PrecisionHint, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity, TrainingRecipe,
};
use std::fmt;

/// Float8 dynamic quantization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Float8Dynamic {
    /// Granularity of scales.
    pub granularity: Float8Granularity,
    /// Allows sums to stay in the accumulators of tensor cores.
    pub fast_accumulation: bool,
}

/// Granularity of float8 scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Float8Granularity {
    /// Per tensor.
    Tensor,
    /// Per row.
    Row,
}

/// Suffix of recipe names that allow fast accumulation.
const FAST_SUFFIX: &str = "-fast";

impl fmt::Display for Float8Dynamic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match (self.granularity, self.fast_accumulation) {
            (Float8Granularity::Tensor, false) => "float8dq-tensor",
            (Float8Granularity::Tensor, true) => "float8dq-tensor-fast",
            (Float8Granularity::Row, false) => "float8dq-row",
            (Float8Granularity::Row, true) => "float8dq-row-fast",
        })
    }
}

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["float8dq[-tensor|-row][-fast]"],
    about: "8-bit float weights and activations, a scale per tensor (default) or per row; fast: sums in tensor-core accumulators",
    examples: &["float8dq-tensor", "float8dq-row"],
    parse: |name| Some(Box::new(Float8Dynamic::parse(name)?)),
};

impl Float8Dynamic {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        let (scaled, fast) = name.strip_suffix(FAST_SUFFIX).map_or((name, false), |scaled| (scaled, true));
        let scaling = match scaled {
            "float8dq" | "float8dq-tensor" => Float8Granularity::Tensor,
            "float8dq-row" => Float8Granularity::Row,
            // Alias from torchao's accuracy tables.
            "float8_rowwise" if !fast => Float8Granularity::Row,
            _ => return None,
        };
        Some(Self { granularity: scaling, fast_accumulation: fast })
    }
}

impl Scheme for Float8Dynamic {
    fn supports_semi_structured(&self) -> bool {
        !self.fast_accumulation
    }

    fn quant_config(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        if let (Some(sparsity), true) = (sparsity, self.fast_accumulation) {
            return Err(RecipeError::Unsupported(format!(
                "{self} with {sparsity}: fast accumulation needs a dense weight; remove {FAST_SUFFIX} from the name"
            )));
        }
        let (input, grouping) = match (sparsity, self.granularity) {
            (Some(Sparsity::SemiStructured), _) => (Element::E5m2, Grouping::Row),
            (_, Float8Granularity::Tensor) => (Element::E4m3, Grouping::Tensor),
            (_, Float8Granularity::Row) => (Element::E4m3, Grouping::Row),
        };
        let format = |element| Format::float8(element, grouping, dtype);
        let config =
            QuantConfig::dynamic(dtype, format(Element::E4m3), format(input), MatmulMode::QuantizedValues(Dtype::F32));
        Ok(QuantConfig { precision_hint: self.fast_accumulation.then_some(PrecisionHint::FastAccumulation), ..config })
    }

    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        let promoted = match self.granularity {
            Float8Granularity::Tensor => TrainingRecipe::TENSORWISE,
            Float8Granularity::Row => TrainingRecipe::ROWWISE,
        };
        Ok(if self.fast_accumulation { promoted.with_fast_accumulation() } else { Some(promoted) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparsity_selects_row_scales_and_e5m2_input() {
        let recipe = Float8Dynamic::parse("float8dq").unwrap();
        let config = recipe.quant_config(Dtype::Bf16, Some(Sparsity::SemiStructured)).unwrap();
        let (weight, input) = (config.weight.unwrap(), config.input.unwrap());
        assert_eq!((weight.element, weight.grouping), (Element::E4m3, Grouping::Row));
        assert_eq!((input.element, input.grouping), (Element::E5m2, Grouping::Row));
    }

    #[test]
    fn fast_accumulation_keeps_formats() {
        for name in ["float8dq-tensor", "float8dq-row"] {
            let configs = |name: &str| {
                let recipe = Float8Dynamic::parse(name).unwrap();
                assert_eq!(recipe.to_string(), name);
                (recipe.quant_config(Dtype::Bf16, None).unwrap(), recipe.training().unwrap().unwrap())
            };
            let ((promoted, trained), (fast, trained_fast)) = (configs(name), configs(&format!("{name}-fast")));
            assert_eq!((promoted.precision_hint, fast.precision_hint), (None, Some(PrecisionHint::FastAccumulation)));
            assert_eq!(QuantConfig { precision_hint: None, ..fast }, promoted);
            assert_eq!(trained_fast, trained.with_fast_accumulation().unwrap());
        }
        let fast = Float8Dynamic::parse("float8dq-fast").unwrap();
        assert_eq!(fast.to_string(), "float8dq-tensor-fast");
        assert!(fast.quant_config(Dtype::Bf16, Some(Sparsity::SemiStructured)).is_err());
        assert_eq!(Float8Dynamic::parse("float8_rowwise-fast"), None);
    }
}
