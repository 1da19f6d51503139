//! Interface of everything that configures the quantization of a module.

use crate::{Dtype, FloatType, QuantConfig, Recipe, RecipeError, RecipeVariant};
use calorimeter_case::Name;

/// Source of the configuration of linear layers: a [`Recipe`], a recipe with a sparsity, or a custom [`QuantConfig`].
pub trait Quantizer {
    /// Name in reports.
    fn name(&self) -> Name;

    /// Returns the configuration of a layer whose weight is in `dtype`; the error says what is supported.
    fn quant_config(&self, dtype: Dtype) -> Result<QuantConfig, RecipeError>;
}

impl Quantizer for Recipe {
    fn name(&self) -> Name {
        self.name()
    }

    fn quant_config(&self, dtype: Dtype) -> Result<QuantConfig, RecipeError> {
        self.quant_config(dtype, None)
    }
}

impl Quantizer for RecipeVariant {
    fn name(&self) -> Name {
        self.to_string().into()
    }

    fn quant_config(&self, dtype: Dtype) -> Result<QuantConfig, RecipeError> {
        self.quant_config(dtype)
    }
}

impl Quantizer for QuantConfig {
    fn name(&self) -> Name {
        Name::new("custom configuration")
    }

    fn quant_config(&self, dtype: Dtype) -> Result<QuantConfig, RecipeError> {
        if self.dtype == dtype {
            return Ok(*self);
        }
        Err(RecipeError::WeightDtype { found: dtype.burn(), supported: vec![self.dtype.burn()] })
    }
}
