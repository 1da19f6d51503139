//! The table of recipes.

use crate::names::written_as_a_name;
use crate::{Dtype, Linear, RecipeError, Reserved, Scheme, Weight};
use crate::{baseline::Baseline, int8wo::Int8WeightOnly};
use burn::tensor::backend::Backend;
use std::{fmt, str::FromStr};

/// What `list` shows of a recipe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeInfo {
    /// Its name, or the pattern of its names.
    pub name: String,
    /// What it does, in one line.
    pub about: &'static str,
}

macro_rules! recipes {
    ($($scheme:ident),+ $(,)?) => {
        /// A way to quantise a model's linear layers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Recipe {
            $(#[doc = concat!("[`", stringify!($scheme), "`]")] $scheme($scheme),)+
        }

        impl Recipe {
            /// Every recipe, for `list`.
            pub fn known() -> Vec<RecipeInfo> {
                let mut known = Vec::new();
                $(known.extend($scheme::spellings().into_iter().map(|name| RecipeInfo { name, about: $scheme::ABOUT }));)+
                known
            }

            /// Whether a weight of this size and type can be quantised; the error says what would make it run.
            pub fn check(&self, n: u64, k: u64, dtype: Dtype) -> Result<(), RecipeError> {
                match self { $(Self::$scheme(scheme) => scheme.check(n, k, dtype),)+ }
            }

            /// Bytes of the quantised weight, scales included.
            pub fn weight_bytes(&self, n: u64, k: u64, dtype: Dtype) -> u64 {
                match self { $(Self::$scheme(scheme) => scheme.weight_bytes(n, k, dtype),)+ }
            }

            /// Values rounded to the dtype in a row on the way through the layer.
            pub fn roundings(&self) -> u32 {
                match self { $(Self::$scheme(scheme) => scheme.roundings(),)+ }
            }

            /// The weight that the quantised operands stand for.
            pub fn dequantised(&self, weight: &Weight) -> Weight {
                match self { $(Self::$scheme(scheme) => scheme.dequantised(weight),)+ }
            }

            /// The layer on a device.
            pub fn linear<B: Backend>(&self, weight: &Weight, device: &B::Device) -> Result<Box<dyn Linear<B>>, RecipeError> {
                match self { $(Self::$scheme(scheme) => scheme.linear::<B>(weight, device),)+ }
            }
        }

        impl fmt::Display for Recipe {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$scheme(scheme) => scheme.fmt(f),)+ }
            }
        }

        impl FromStr for Recipe {
            type Err = RecipeError;

            fn from_str(name: &str) -> Result<Self, RecipeError> {
                $(if let Some(scheme) = $scheme::parse(name) { return Ok(Self::$scheme(scheme)); })+
                Err(RecipeError::unknown("recipe", name, Self::known().into_iter().map(|info| info.name)))
            }
        }
    };
}

// One line for each recipe; names are asked in this order.
recipes! {
    Baseline,
    Int8WeightOnly,
    Reserved,
}

impl Recipe {
    /// The recipe that all others are compared with.
    pub const BASELINE: Self = Self::Baseline(Baseline);
}

written_as_a_name!(
    Recipe,
    "Recipe",
    "a quantisation recipe such as baseline or int8wo",
    Recipe::known().into_iter().map(|info| info.name).collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_round_trips_through_text_and_json() {
        for name in ["baseline", "int8wo", "int4wo-128-hqq", "float8dq"] {
            let recipe: Recipe = serde_json::from_value(name.into()).unwrap();
            assert_eq!(recipe.to_string(), name);
            assert_eq!(serde_json::to_value(recipe).unwrap(), name);
        }
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        for (given, nearest) in
            [("int8w0", "int8wo"), ("basline", "baseline"), ("flaot8wo", "float8wo"), ("INT8WO", "int8wo")]
        {
            let error = given.parse::<Recipe>().unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean {nearest:?}")), "{error}");
        }
        assert!(!"zzz".parse::<Recipe>().unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn a_recipe_without_arithmetic_says_so() {
        let recipe: Recipe = "int8dq".parse().unwrap();
        assert!(matches!(recipe.check(16, 16, Dtype::Bf16), Err(RecipeError::Unsupported(_))));
    }
}
