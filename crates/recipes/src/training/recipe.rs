//! Named float8 training recipes.

use super::float8::{Float8Training, Operand};
use std::fmt;

/// Named float8 training recipe; see [`Recipe::training`](crate::Recipe::training).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrainingRecipe {
    scaling: Scaling,
    /// Allows output sums to stay in the accumulators of tensor cores.
    fast: bool,
    /// Operands of [`Operand::ALL`] that are not cast to float8.
    kept: [bool; 3],
}

/// Granularity and format of scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Scaling {
    Tensorwise,
    Rowwise,
    RowwiseWithGwHp,
    Mxfp8,
}

/// Suffix of recipe names that allow fast accumulation.
const FAST: &str = "-fast";

/// Marker between the name of a recipe and the operands that it leaves unquantized.
const WITHOUT: &str = "-without";

impl TrainingRecipe {
    /// See [`Float8Training::tensorwise`].
    pub const TENSORWISE: Self = Self::of_all(Scaling::Tensorwise);
    /// See [`Float8Training::rowwise`].
    pub const ROWWISE: Self = Self::of_all(Scaling::Rowwise);
    /// See [`Float8Training::rowwise_with_gw_hp`].
    pub const ROWWISE_WITH_GW_HP: Self = Self::of_all(Scaling::RowwiseWithGwHp);
    /// See [`Float8Training::mxfp8`].
    pub const MXFP8: Self = Self::of_all(Scaling::Mxfp8);

    /// Recipes with all operands in float8.
    pub const ALL: [Self; 4] = [Self::TENSORWISE, Self::ROWWISE, Self::ROWWISE_WITH_GW_HP, Self::MXFP8];

    const fn of_all(scaling: Scaling) -> Self {
        Self { scaling, fast: false, kept: [false; 3] }
    }

    /// Leaves an operand in the dtype of the model: `rowwise-without-input`. Returns `None` if no operand would remain
    /// in float8.
    pub fn without(mut self, operand: Operand) -> Option<Self> {
        self.kept[operand as usize] = true;
        self.kept.contains(&false).then_some(self)
    }

    /// Allows output sums to stay in the accumulators of tensor cores, as torchao's kernels do: `tensorwise-fast`.
    /// Returns `None` for microscaling, which has a single accumulation mode on every device.
    pub fn fast(self) -> Option<Self> {
        (self.scaling != Scaling::Mxfp8).then_some(Self { fast: true, ..self })
    }

    /// Accumulates output sums in f32.
    pub fn promoted(self) -> Self {
        Self { fast: false, ..self }
    }

    /// True if output sums may stay in the accumulators of tensor cores.
    pub fn is_fast(self) -> bool {
        self.fast
    }

    /// Parses a name exactly.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, without) = text.split_once(WITHOUT).map_or((text, None), |(name, rest)| (name, Some(rest)));
        let (scaling, fast) = name.strip_suffix(FAST).map_or((name, false), |name| (name, true));
        let all = Self::ALL.into_iter().find(|recipe| recipe.scaling_name() == scaling)?;
        let all = if fast { all.fast()? } else { all };
        let Some(without) = without else { return Some(all) };
        let mut recipe = all;
        for name in without.strip_prefix('-')?.split('-') {
            recipe = recipe.without(Operand::ALL.into_iter().find(|operand| operand.name() == name)?)?;
        }
        // Operands are listed in canonical order without repetition.
        recipe.to_string().strip_prefix(name)?.strip_prefix(WITHOUT).filter(|rest| *rest == without).map(|_| recipe)
    }

    /// Configuration of a layer.
    pub fn training(self) -> Float8Training {
        let all = match self.scaling {
            Scaling::Tensorwise => Float8Training::tensorwise(),
            Scaling::Rowwise => Float8Training::rowwise(),
            Scaling::RowwiseWithGwHp => Float8Training::rowwise_with_gw_hp(),
            Scaling::Mxfp8 => Float8Training::mxfp8(),
        };
        self.kept().fold(all, Float8Training::without)
    }

    /// Description of the scaling and of unquantized operands, for records.
    pub fn scaling(self) -> String {
        let scaling = match self.scaling {
            Scaling::Tensorwise => "e4m3 per tensor; gradients e5m2",
            Scaling::Rowwise => "e4m3 per row; powers of two",
            Scaling::RowwiseWithGwHp => "e4m3 per row; powers of two; the weight's gradient unscaled",
            Scaling::Mxfp8 => "e4m3 per 32 of a row; powers of two",
        };
        let sums = if self.fast { "; sums of the output in tensor cores" } else { "" };
        self.kept().fold(format!("{scaling}{sums}"), |text, operand| format!("{text}; {} as it is", operand.name()))
    }

    fn kept(self) -> impl Iterator<Item = Operand> {
        Operand::ALL.into_iter().filter(move |operand| self.kept[*operand as usize])
    }

    fn scaling_name(self) -> &'static str {
        match self.scaling {
            Scaling::Tensorwise => "tensorwise",
            Scaling::Rowwise => "rowwise",
            Scaling::RowwiseWithGwHp => "rowwise_with_gw_hp",
            Scaling::Mxfp8 => "mxfp8",
        }
    }
}

impl fmt::Display for TrainingRecipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kept: String = self.kept().map(|operand| format!("-{}", operand.name())).collect();
        let without = if kept.is_empty() { "" } else { WITHOUT };
        let fast = if self.fast { FAST } else { "" };
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
        match TrainingRecipe::ALL.into_iter().find(|recipe| recipe.training().with_casting(self.casting) == *self) {
            Some(recipe) => recipe.fmt(f),
            None => f.pad("custom float8 training"),
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

    #[test]
    fn an_operand_that_stays_as_it_is_is_part_of_the_name() {
        let partly = TrainingRecipe::ROWWISE.without(Operand::GradOutput).unwrap().without(Operand::Input).unwrap();
        assert_eq!(partly.to_string(), "rowwise-without-input-grad_output");
        assert_eq!(partly.scaling(), "e4m3 per row; powers of two; input as it is; grad_output as it is");
        assert_eq!(partly.without(Operand::Weight), None);
        let fast = TrainingRecipe::TENSORWISE.fast().unwrap();
        assert_eq!(fast.scaling(), "e4m3 per tensor; gradients e5m2; sums of the output in tensor cores");
        assert_eq!(
            (fast.training(), fast.promoted()),
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
