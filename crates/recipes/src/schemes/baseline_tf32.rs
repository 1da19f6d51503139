//! `baseline-tf32`: the unmodified model in f32, with matmuls on tensor cores.

use crate::{Dtype, PrecisionHint, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity, TrainingRecipe};
use std::fmt;

/// No quantization; operands of matmuls may be rounded to TF32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BaselineTf32;

impl fmt::Display for BaselineTf32 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("baseline-tf32")
    }
}

/// Registration of the recipe.
pub static FAMILY: RecipeFamily = RecipeFamily {
    spellings: &["baseline-tf32"],
    about: "the unmodified model in f32, with operands of matmuls rounded to TF32 for tensor cores",
    examples: &[],
    parse: |name| (name == "baseline-tf32").then(|| Box::new(BaselineTf32) as Box<dyn Scheme>),
};

impl Scheme for BaselineTf32 {
    fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        if dtype != Dtype::F32 {
            return Err(RecipeError::Unsupported(format!(
                "TF32 rounds f32 operands, but the model is in {dtype}; use `baseline`"
            )));
        }
        Ok(QuantConfig { precision_hint: Some(PrecisionHint::Tf32), ..QuantConfig::unquantized(dtype) })
    }

    fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        Err(RecipeError::Unsupported("TF32 training is not supported; use `baseline`, which trains in f32".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tf32_requires_f32() {
        let config = BaselineTf32.quant_config(Dtype::F32, None).unwrap();
        assert_eq!(QuantConfig { precision_hint: None, ..config }, QuantConfig::unquantized(Dtype::F32));
        assert!(matches!(BaselineTf32.quant_config(Dtype::Bf16, None), Err(RecipeError::Unsupported(_))));
    }
}
