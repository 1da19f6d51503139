//! What a module can be quantized by.

use crate::{Dtype, Recipe, RecipeError, Treatment, Variant};
use calorimeter_case::Name;

/// What says how the linear layers of a module are quantized: a [`Recipe`], with or without a sparsity, or a [`Treatment`]
/// of one's own, which needs no recipe.
pub trait Quantizer {
    /// What reports call it.
    fn name(&self) -> Name;

    /// What it does to a layer whose weight is in `dtype`; the error says what would make it run.
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
        Name::new("a treatment of its own")
    }

    fn treatment(&self, dtype: Dtype) -> Result<Treatment, RecipeError> {
        if self.dtype == dtype {
            return Ok(*self);
        }
        let other = self.dtype;
        Err(RecipeError::Unsupported(format!(
            "the treatment is for weights in {other}, not in {dtype}; cast the layer"
        )))
    }
}
