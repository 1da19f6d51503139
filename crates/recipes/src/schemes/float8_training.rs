//! `tensorwise`, `rowwise`, `rowwise_with_gw_hp`: torchao's names of float8 training recipes, which do not quantize
//! trained models. A suffix allows fast accumulation, `rowwise-fast`, or excludes operands from float8,
//! `rowwise-without-input`.

use crate::{Dtype, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity, TrainingRecipe};
use std::fmt;

/// Training recipe that does not quantize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Float8TrainingOnly(TrainingRecipe);

/// Registration of the recipes.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &[
        "tensorwise",
        "rowwise",
        "rowwise_with_gw_hp",
        "{tensorwise|rowwise|rowwise_with_gw_hp}-fast",
        "{tensorwise|rowwise|rowwise_with_gw_hp|mxfp8}-without-{input|weight|grad_output}",
        "{tensorwise|rowwise|rowwise_with_gw_hp|mxfp8}-without-{input-weight|input-grad_output|weight-grad_output}",
    ],
    about: "training in float8: a scale per tensor, or powers of two per row",
    examples: &[],
    parse: |name| Some(Box::new(Float8TrainingOnly::parse(name)?)),
};

impl Float8TrainingOnly {
    /// Parses a name of the recipes.
    pub fn parse(name: &str) -> Option<Self> {
        // Plain `mxfp8` belongs to the recipe that also quantizes.
        TrainingRecipe::parse(name).filter(|recipe| *recipe != TrainingRecipe::MXFP8).map(Self)
    }
}

impl fmt::Display for Float8TrainingOnly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Scheme for Float8TrainingOnly {
    fn quant_config(&self, _: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        Err(RecipeError::Unsupported(format!(
            "{self} is a training recipe for `benchmark_mode: training`; to quantize, use float8dq-tensor or float8dq-row"
        )))
    }

    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        Ok(Some(self.0))
    }
}
