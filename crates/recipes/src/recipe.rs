//! The table of recipes.

use crate::schemes::{
    baseline::Baseline, float8dq::Float8Dynamic, float8wo::Float8WeightOnly, fp6::Fp6, gemlitewo::Gemlite,
    int4wo::Int4WeightOnly, int8adq_int4w::Int8Int4, int8dq::Int8Dynamic, int8wo::Int8WeightOnly, intx::IntxDynamic,
    marlin::Marlin, marlin_qqq::MarlinQqq, mxfp::Mx, nvfp4::Nvfp4, uintx::Uintx,
};
use crate::{Dtype, RecipeError, Scheme, Sparsity, Treatment};
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
    ($($scheme:ident: [$($typical:literal),+ $(,)?]),+ $(,)?) => {
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

            /// A few of each family, for an overview.
            pub fn typical() -> Vec<Self> {
                // A test reads each of them.
                TYPICAL.iter().filter_map(|name| name.parse().ok()).collect()
            }

            /// See [`Scheme::takes_semi_structured`].
            pub fn takes_semi_structured(&self) -> bool {
                match self { $(Self::$scheme(scheme) => scheme.takes_semi_structured(),)+ }
            }

            /// See [`Scheme::treatment`].
            pub fn treatment(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<Treatment, RecipeError> {
                let treatment = match self { $(Self::$scheme(scheme) => scheme.treatment(dtype, sparsity),)+ }?;
                Ok(Treatment { sparsity, ..treatment })
            }
        }

        const TYPICAL: &[&str] = &[$($($typical),+),+];

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

// One line for each recipe, with the names that stand for it in an overview; names are asked in this order.
recipes! {
    Baseline: ["baseline"],
    Int8WeightOnly: ["int8wo"],
    Int8Dynamic: ["int8dq", "int8dq_prefill_wo_decode"],
    Int4WeightOnly: ["int4wo-32", "int4wo-128", "int4wo-256", "int4wo-32-hqq", "int4wo-128-hqq"],
    Int8Int4: ["int8adq-int4w-symm"],
    Marlin: ["marlin"],
    MarlinQqq: ["marlin-qqq"],
    Fp6: ["fp6"],
    Uintx: ["uintx-2-64", "uintx-3-64", "uintx-4-64", "uintx-6-64", "uintx-4-64-hqq", "uintx-8-64-hqq"],
    IntxDynamic: [
        "int8_dynamic_activation_intx_weight-4-32-true",
        "int8_dynamic_activation_intx_weight-4-32-false",
    ],
    Gemlite: ["gemlitewo-4-64", "gemlitewo-8"],
    Float8WeightOnly: ["float8wo"],
    Float8Dynamic: ["float8dq-tensor", "float8dq-row"],
    Mx: ["mxfp8", "mxfp4"],
    Nvfp4: ["nvfp4"],
}

impl Recipe {
    /// The recipe that all others are compared with.
    pub const BASELINE: Self = Self::Baseline(Baseline);
}

calorimeter_case::written_as_a_name!(
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
        for name in [
            "baseline",
            "int8wo",
            "int8dq",
            "int8dq_prefill_wo_decode",
            "int4wo-32",
            "int4wo-128-hqq",
            "int8adq-int4w-symm",
            "marlin",
            "marlin-qqq",
            "fp6",
            "uintx-3-64",
            "uintx-8-128-hqq",
            "int8_dynamic_activation_intx_weight-4-32-false",
            "int8_dynamic_activation_intx_weight-1-64-true",
            "gemlitewo-4-32",
            "gemlitewo-8",
            "float8wo",
            "float8dq-tensor",
            "float8dq-row",
            "mxfp8",
            "mxfp4",
            "nvfp4",
        ] {
            let recipe: Recipe = serde_json::from_value(name.into()).unwrap();
            assert_eq!(recipe.to_string(), name);
            assert_eq!(serde_json::to_value(recipe).unwrap(), name);
        }
    }

    #[test]
    fn other_spellings_are_read_and_not_written() {
        for (given, written) in [
            ("float8dq", "float8dq-tensor"),
            ("float8_rowwise", "float8dq-row"),
            ("gemlitewo-4", "gemlitewo-4-64"),
            ("gemlitewo-8-128", "gemlitewo-8"),
            ("int4_groupwise_hqq_weight_only", "int4wo-32-hqq"),
            ("int8_rowwise", "int8dq"),
            ("int8_rowwise_weight_only", "int8wo"),
        ] {
            assert_eq!(given.parse::<Recipe>().unwrap().to_string(), written);
        }
    }

    #[test]
    fn names_are_read_exactly() {
        for name in [
            "",
            "int8",
            "int8dqx",
            "xint8dq",
            "int4wo",
            "int4wo-33",
            "int4wo-032",
            "int4wo-32-",
            "int4wo-32-hqqq",
            "int4wo-32-hqq-hqq",
            "uintx-9-64",
            "uintx-0-64",
            "uintx-4-0",
            "uintx-4-064",
            "uintx-4-+64",
            "uintx-4",
            "gemlitewo-3",
            "gemlitewo-4-",
            "gemlitewo-4-64-32",
            "float8dq-",
            "float8dq-rows",
            "FP6",
            "int8_dynamic_activation_intx_weight-4-32-maybe",
            "int8_dynamic_activation_intx_weight-4-32",
            "int8_dynamic_activation_intx_weight-4-0-true",
            "marlin-",
            "mxfp6",
        ] {
            assert!(name.parse::<Recipe>().is_err(), "{name}");
        }
    }

    #[test]
    fn every_listed_pattern_stands_for_names_that_are_read() {
        for info in Recipe::known() {
            for name in crate::names::spelled_out(&info.name, &["64".into()]) {
                assert!(name.parse::<Recipe>().is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn the_names_of_the_overview_are_read_and_written_alike() {
        assert_eq!(Recipe::typical().iter().map(ToString::to_string).collect::<Vec<_>>(), TYPICAL);
    }

    #[test]
    fn a_misspelt_name_is_answered_with_the_nearest() {
        for (given, nearest) in [
            ("int8w0", "int8wo"),
            ("basline", "baseline"),
            ("flaot8wo", "float8wo"),
            ("INT8WO", "int8wo"),
            ("int4w0-128", "int4wo-128"),
            ("unitx-3-100-hqq", "uintx-3-100-hqq"),
            ("uintx-4-064", "uintx-4-64"),
        ] {
            let error = given.parse::<Recipe>().unwrap_err().to_string();
            assert!(error.contains(&format!("did you mean {nearest:?}")), "{error}");
        }
        assert!(!"zzz".parse::<Recipe>().unwrap_err().to_string().contains("did you mean"));
    }
}
