//! `tensorwise`, `rowwise`, `rowwise_with_gw_hp`: torchao's names for ways to train in float8. Trained models are not
//! quantized by them. Behind each may stand that sums may be fast, `rowwise-fast`, and which operands stay as they are:
//! `rowwise-without-input`.

use crate::{Dtype, Family, RecipeError, Scheme, Sparsity, TrainingRecipe, Treatment};
use std::fmt;

/// A way to train that is no way to quantize.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TrainingAlone(TrainingRecipe);

/// Its names.
pub static FAMILY: Family = Family {
    spellings: &[
        "tensorwise",
        "rowwise",
        "rowwise_with_gw_hp",
        "{tensorwise|rowwise|rowwise_with_gw_hp}-fast",
        "{tensorwise|rowwise|rowwise_with_gw_hp|mxfp8}-without-{input|weight|grad_output}",
        "{tensorwise|rowwise|rowwise_with_gw_hp|mxfp8}-without-{input-weight|input-grad_output|weight-grad_output}",
    ],
    about: "training in float8: a scale per tensor, or powers of two per row",
    typical: &[],
    parse: |name| Some(Box::new(TrainingAlone::parse(name)?)),
};

impl TrainingAlone {
    /// Reads exactly one of its names.
    pub fn parse(name: &str) -> Option<Self> {
        // `mxfp8` alone quantizes as well.
        TrainingRecipe::parse(name).filter(|recipe| *recipe != TrainingRecipe::MXFP8).map(Self)
    }
}

impl fmt::Display for TrainingAlone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Scheme for TrainingAlone {
    fn treatment(&self, _: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        Err(RecipeError::Unsupported(format!(
            "{self} is a way to train, which `benchmark_mode: training` measures; float8dq-tensor and float8dq-row quantize"
        )))
    }

    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        Ok(Some(self.0))
    }
}
