//! The names of ways to train in float8.

use super::float8::Float8Training;
use crate::RecipeError;
use std::fmt;
use std::str::FromStr;

/// A way to train in float8 that has a name: torchao's, and what its benchmarks call them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

impl FromStr for TrainingRecipe {
    type Err = RecipeError;

    fn from_str(name: &str) -> Result<Self, RecipeError> {
        match name {
            "float8dq" | "float8dq-tensor" => return Ok(Self::Tensorwise),
            "float8dq-row" => return Ok(Self::Rowwise),
            _ => {}
        }
        Self::ALL.into_iter().find(|recipe| recipe.name() == name).ok_or_else(|| {
            let others = ["float8dq-tensor", "float8dq-row"].map(String::from);
            let known = Self::ALL.map(|recipe| recipe.to_string()).into_iter().chain(others);
            RecipeError::unknown("way to train in float8", name, known)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_by_its_name_and_a_wrong_name_has_a_suggestion() {
        for recipe in TrainingRecipe::ALL {
            assert_eq!(recipe.to_string().parse(), Ok(recipe));
            assert_eq!(recipe.training().to_string(), recipe.to_string());
        }
        assert_eq!("float8dq-row".parse(), Ok(TrainingRecipe::Rowwise));
        let error = "rowise".parse::<TrainingRecipe>().unwrap_err().to_string();
        assert!(error.contains("rowwise"), "{error}");
    }
}
