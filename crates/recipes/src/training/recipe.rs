//! Named float8 training recipes.

use super::float8::{Float8Training, TrainingOperand};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Named float8 training recipe; see [`Recipe::training`](crate::Recipe::training).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TrainingRecipe {
    scaling: TrainingScaling,
    /// Allows output sums to stay in the accumulators of tensor cores.
    fast_accumulation: bool,
    /// Operands of [`TrainingOperand::ALL`] that are not cast to float8.
    unquantized: [bool; 3],
}

/// Granularity and format of scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
enum TrainingScaling {
    Tensorwise,
    Rowwise,
    RowwiseWithGwHp,
    Mxfp8,
}

/// Suffix of recipe names that allow fast accumulation.
const FAST_SUFFIX: &str = "-fast";

/// Marker between the name of a recipe and the operands that it leaves unquantized.
const WITHOUT_MARKER: &str = "-without";

impl TrainingRecipe {
    /// See [`Float8Training::tensorwise`].
    pub const TENSORWISE: Self = Self::new(TrainingScaling::Tensorwise);
    /// See [`Float8Training::rowwise`].
    pub const ROWWISE: Self = Self::new(TrainingScaling::Rowwise);
    /// See [`Float8Training::rowwise_with_gw_hp`].
    pub const ROWWISE_WITH_GW_HP: Self = Self::new(TrainingScaling::RowwiseWithGwHp);
    /// See [`Float8Training::mxfp8`].
    pub const MXFP8: Self = Self::new(TrainingScaling::Mxfp8);

    /// Recipes with all operands in float8.
    pub const ALL: [Self; 4] = [Self::TENSORWISE, Self::ROWWISE, Self::ROWWISE_WITH_GW_HP, Self::MXFP8];

    const fn new(scaling: TrainingScaling) -> Self {
        Self { scaling, fast_accumulation: false, unquantized: [false; 3] }
    }

    /// Leaves an operand in the dtype of the model: `rowwise-without-input`. Returns `None` if no operand would remain
    /// in float8.
    pub fn with_unquantized(mut self, operand: TrainingOperand) -> Option<Self> {
        self.unquantized[operand as usize] = true;
        self.unquantized.contains(&false).then_some(self)
    }

    /// Allows output sums to stay in the accumulators of tensor cores, as torchao's kernels do: `tensorwise-fast`.
    /// Returns `None` for microscaling, which has a single accumulation mode on every device.
    pub fn with_fast_accumulation(self) -> Option<Self> {
        (self.scaling != TrainingScaling::Mxfp8).then_some(Self { fast_accumulation: true, ..self })
    }

    /// Accumulates output sums in f32.
    pub fn with_promoted_accumulation(self) -> Self {
        Self { fast_accumulation: false, ..self }
    }

    /// True if output sums may stay in the accumulators of tensor cores.
    pub fn has_fast_accumulation(self) -> bool {
        self.fast_accumulation
    }

    /// Parses a name exactly.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, without) = text.split_once(WITHOUT_MARKER).map_or((text, None), |(name, rest)| (name, Some(rest)));
        let (scaling, fast) = name.strip_suffix(FAST_SUFFIX).map_or((name, false), |name| (name, true));
        let all = Self::ALL.into_iter().find(|recipe| recipe.scaling_name() == scaling)?;
        let all = if fast { all.with_fast_accumulation()? } else { all };
        let Some(without) = without else { return Some(all) };
        let mut recipe = all;
        for name in without.strip_prefix('-')?.split('-') {
            recipe =
                recipe.with_unquantized(TrainingOperand::ALL.into_iter().find(|operand| operand.name() == name)?)?;
        }
        // Operands are listed in canonical order without repetition.
        recipe
            .to_string()
            .strip_prefix(name)?
            .strip_prefix(WITHOUT_MARKER)
            .filter(|rest| *rest == without)
            .map(|_| recipe)
    }

    /// Configuration of a layer.
    pub fn training(self) -> Float8Training {
        let all = match self.scaling {
            TrainingScaling::Tensorwise => Float8Training::tensorwise(),
            TrainingScaling::Rowwise => Float8Training::rowwise(),
            TrainingScaling::RowwiseWithGwHp => Float8Training::rowwise_with_gw_hp(),
            TrainingScaling::Mxfp8 => Float8Training::mxfp8(),
        };
        self.unquantized_operands().fold(all, Float8Training::with_unquantized)
    }

    /// Description of the scaling and of unquantized operands, for records.
    pub fn scaling_description(self) -> String {
        let scaling = match self.scaling {
            TrainingScaling::Tensorwise => "e4m3 per tensor; gradients e5m2",
            TrainingScaling::Rowwise => "e4m3 per row; powers of two",
            TrainingScaling::RowwiseWithGwHp => "e4m3 per row; powers of two; the weight's gradient unscaled",
            TrainingScaling::Mxfp8 => "e4m3 per 32 of a row; powers of two",
        };
        let sums = if self.fast_accumulation { "; sums of the output in tensor cores" } else { "" };
        self.unquantized_operands()
            .fold(format!("{scaling}{sums}"), |text, operand| format!("{text}; {} as it is", operand.name()))
    }

    fn unquantized_operands(self) -> impl Iterator<Item = TrainingOperand> {
        TrainingOperand::ALL.into_iter().filter(move |operand| self.unquantized[*operand as usize])
    }

    fn scaling_name(self) -> &'static str {
        match self.scaling {
            TrainingScaling::Tensorwise => "tensorwise",
            TrainingScaling::Rowwise => "rowwise",
            TrainingScaling::RowwiseWithGwHp => "rowwise_with_gw_hp",
            TrainingScaling::Mxfp8 => "mxfp8",
        }
    }
}

impl fmt::Display for TrainingRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept: String = self.unquantized_operands().map(|operand| format!("-{}", operand.name())).collect();
        let without = if kept.is_empty() { "" } else { WITHOUT_MARKER };
        let fast = if self.fast_accumulation { FAST_SUFFIX } else { "" };
        f.pad(&format!("{}{fast}{without}{kept}", self.scaling_name()))
    }
}

impl From<TrainingRecipe> for Float8Training {
    fn from(recipe: TrainingRecipe) -> Self {
        recipe.training()
    }
}

/// Displays the name of the recipe, if there is one.
impl fmt::Display for Float8Training {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TrainingRecipe::ALL
            .into_iter()
            .find(|recipe| recipe.training().with_cast_strategy(self.cast_strategy) == *self)
        {
            Some(recipe) => recipe.fmt(f),
            None => f.pad("custom float8 training"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_displays_recipe_name() {
        for recipe in TrainingRecipe::ALL {
            assert_eq!(recipe.training().to_string(), recipe.to_string());
        }
    }

    #[test]
    fn recipe_names_round_trip() {
        let partly = TrainingRecipe::ROWWISE
            .with_unquantized(TrainingOperand::GradOutput)
            .unwrap()
            .with_unquantized(TrainingOperand::Input)
            .unwrap();
        assert_eq!(partly.to_string(), "rowwise-without-input-grad_output");
        assert_eq!(partly.scaling_description(), "e4m3 per row; powers of two; input as it is; grad_output as it is");
        assert_eq!(partly.with_unquantized(TrainingOperand::Weight), None);
        let fast = TrainingRecipe::TENSORWISE.with_fast_accumulation().unwrap();
        assert_eq!(fast.scaling_description(), "e4m3 per tensor; gradients e5m2; sums of the output in tensor cores");
        assert_eq!(
            (fast.training(), fast.with_promoted_accumulation()),
            (TrainingRecipe::TENSORWISE.training(), TrainingRecipe::TENSORWISE)
        );
        for name in [
            "mxfp8-without-weight",
            "tensorwise-without-input-weight",
            "rowwise_with_gw_hp-without-grad_output",
            "rowwise-fast",
            "tensorwise-fast-without-input",
        ] {
            assert_eq!(TrainingRecipe::parse(name).unwrap().to_string(), name);
        }
        for name in [
            "rowwise-without",
            "rowwise-without-",
            "rowwise-without-bias",
            "rowwise-without-weight-input",
            "rowwise-without-input-input",
            "rowwise-without-input-weight-grad_output",
            "rowwise-input",
            "mxfp8-fast",
            "rowwise-fast-fast",
            "rowwise-without-input-fast",
            "fast",
        ] {
            assert_eq!(TrainingRecipe::parse(name), None, "{name}");
        }
    }
}
