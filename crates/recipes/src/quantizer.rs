//! Interface of everything that configures the quantization of a module.

use crate::{Dtype, Recipe, RecipeError, Treatment, Variant};
use calorimeter_case::Name;

/// Source of the configuration of linear layers: a [`Recipe`], a recipe with a sparsity, or a custom [`Treatment`].
pub trait Quantizer {
    /// Name in reports.
    fn name(&self) -> Name;

    /// Returns the configuration of a layer whose weight is in `dtype`; the error says what is supported.
    fn treatment(&self, dtype: Dtype) -> Result<Treatment, RecipeError>;
}

impl Quantizer for Recipe {
    fn name(&self) -> Name {
        self.name()
    }

    fn treatment(&self, dtype: Dtype) -> Result<Treatment, RecipeError> {
        self.treatment(dtype, None)
    }
}

impl Quantizer for Variant {
    fn name(&self) -> Name {
        self.to_string().into()
    }

    fn treatment(&self, dtype: Dtype) -> Result<Treatment, RecipeError> {
        self.treatment(dtype)
    }
}

impl Quantizer for Treatment {
    fn name(&self) -> Name {
        Name::new("custom configuration")
    }

    fn treatment(&self, dtype: Dtype) -> Result<Treatment, RecipeError> {
        if self.dtype == dtype {
            return Ok(*self);
        }
        let other = self.dtype;
        Err(RecipeError::Unsupported(format!(
            "the configuration is for weights in {other}, not {dtype}; cast the layer"
        )))
    }
}
