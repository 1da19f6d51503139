//! The names of ways to train in float8.

use super::float8::Float8Training;
use std::fmt;

/// A way to train in float8 that has a name; [`Recipe::training`](crate::Recipe::training) has it for a recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum TrainingRecipe {
    /// See [`Float8Training::tensorwise`].
    Tensorwise,
    /// See [`Float8Training::rowwise`].
    Rowwise,
    /// See [`Float8Training::rowwise_with_gw_hp`].
    RowwiseWithGwHp,
    /// See [`Float8Training::mxfp8`].
    Mxfp8,
}

impl TrainingRecipe {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Tensorwise, Self::Rowwise, Self::RowwiseWithGwHp, Self::Mxfp8];

    /// What it does to a layer.
    pub fn training(self) -> Float8Training {
        match self {
            Self::Tensorwise => Float8Training::tensorwise(),
            Self::Rowwise => Float8Training::rowwise(),
            Self::RowwiseWithGwHp => Float8Training::rowwise_with_gw_hp(),
            Self::Mxfp8 => Float8Training::mxfp8(),
        }
    }

    /// What shares a scale, for records.
    pub fn scaling(self) -> &'static str {
        match self {
            Self::Tensorwise => "e4m3 per tensor; gradients e5m2",
            Self::Rowwise => "e4m3 per row; powers of two",
            Self::RowwiseWithGwHp => "e4m3 per row; powers of two; the weight's gradient unscaled",
            Self::Mxfp8 => "e4m3 per 32 of a row; powers of two",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Tensorwise => "tensorwise",
            Self::Rowwise => "rowwise",
            Self::RowwiseWithGwHp => "rowwise_with_gw_hp",
            Self::Mxfp8 => "mxfp8",
        }
    }
}

impl fmt::Display for TrainingRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl From<TrainingRecipe> for Float8Training {
    fn from(recipe: TrainingRecipe) -> Self {
        recipe.training()
    }
}

/// By the name of its recipe, where it has one.
impl fmt::Display for Float8Training {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TrainingRecipe::ALL.into_iter().find(|recipe| recipe.training() == *self) {
            Some(recipe) => recipe.fmt(f),
            None => f.pad("a training of its own"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_recipe_does_has_its_name() {
        for recipe in TrainingRecipe::ALL {
            assert_eq!(recipe.training().to_string(), recipe.to_string());
        }
    }
}
