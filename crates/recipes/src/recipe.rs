//! Recipes, identified by name.

use crate::schemes::baseline::Baseline;
use crate::{Dtype, QuantConfig, RecipeError, RecipeFamily, Scheme, Sparsity, TrainingRecipe, registry};
use calorimeter_case::{Name, UnknownName};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::{fmt, str::FromStr};

/// Quantization scheme for the linear layers of a model, built in or registered; equality is by name.
#[derive(Clone, Copy)]
pub struct Recipe {
    name: Name,
    scheme: &'static dyn Scheme,
}

/// Entry of the recipe list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecipeInfo {
    /// Name, or pattern of names.
    pub name: String,
    /// Single-line description.
    pub about: &'static str,
}

impl Recipe {
    /// Baseline of all speed-ups.
    pub const BASELINE: Self = Self { name: Name::new("baseline"), scheme: &Baseline };

    /// Registers a family of recipes for the rest of the process. Returns an error if one of its names is already in
    /// use, or if its parser rejects a name that it lists.
    ///
    /// ```
    /// use calorimeter_recipes::{Dtype, QuantConfig, Recipe, RecipeError, RecipeFamily, Scheme, Sparsity};
    /// use calorimeter_recipes::{Element, format::{Grouping, Format}};
    /// use std::fmt;
    ///
    /// /// 2-bit weights in groups of 32, unquantized activations.
    /// #[derive(Debug)]
    /// struct TwoBits;
    ///
    /// static FAMILY: RecipeFamily = RecipeFamily {
    ///     spellings: &["two-bits"],
    ///     about: "2-bit weights in groups of 32 along K",
    ///     examples: &["two-bits"],
    ///     parse: |name| (name == "two-bits").then(|| Box::new(TwoBits) as Box<dyn Scheme>),
    /// };
    ///
    /// impl fmt::Display for TwoBits {
    ///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    ///         f.pad("two-bits")
    ///     }
    /// }
    ///
    /// impl Scheme for TwoBits {
    ///     fn quant_config(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
    ///         let weight = Format::asymmetric(Element::Unsigned(2), Grouping::Block(32), dtype);
    ///         Ok(QuantConfig::weight_only(dtype, weight))
    ///     }
    /// }
    ///
    /// Recipe::register(&FAMILY)?;
    /// assert!("two-bit".parse::<Recipe>().unwrap_err().to_string().contains("did you mean \"two-bits\"?"));
    /// let config = "two-bits".parse::<Recipe>()?.quant_config(Dtype::F32, None)?;
    /// // Quantized values, an f32 scale and a zero point for each group.
    /// assert_eq!(config.weight_bytes(64, 64), 64 * 64 / 4 + 128 * 4 + 128 / 4);
    /// # Ok::<(), RecipeError>(())
    /// ```
    pub fn register(family: &'static RecipeFamily) -> Result<(), RecipeError> {
        registry::register(family)
    }

    /// Lists all recipes.
    pub fn all() -> Vec<RecipeInfo> {
        let info = |family: &RecipeFamily, name: &str| RecipeInfo { name: name.to_owned(), about: family.about };
        registry::families().iter().flat_map(|family| family.spellings.iter().map(|name| info(family, name))).collect()
    }

    /// Example recipes of each family, for an overview.
    pub fn examples() -> Vec<Self> {
        let names = registry::families().into_iter().flat_map(|family| family.examples);
        // A test parses the examples of all built-in families.
        names.filter_map(|name| name.parse().ok()).collect()
    }

    /// Canonical name.
    pub fn name(&self) -> Name {
        self.name
    }

    /// Quantization scheme; its type can be queried through [`Any`](std::any::Any).
    pub fn scheme(&self) -> &'static dyn Scheme {
        self.scheme
    }

    /// See [`Scheme::supports_semi_structured`].
    pub fn supports_semi_structured(&self) -> bool {
        self.scheme.supports_semi_structured()
    }

    /// See [`Scheme::quant_config`].
    pub fn quant_config(&self, dtype: Dtype, sparsity: Option<Sparsity>) -> Result<QuantConfig, RecipeError> {
        let config = self.scheme.quant_config(dtype, sparsity)?;
        Ok(QuantConfig { sparsity, ..config })
    }

    /// Returns the float8 training recipe, `None` for training in the dtype of the model. The error lists the recipes
    /// that train.
    pub fn training(&self) -> Result<Option<TrainingRecipe>, RecipeError> {
        self.scheme.training().map_err(|error| match error {
            RecipeError::Unsupported(why) => RecipeError::Unsupported(format!("{}: {why}", self.name)),
            other => other,
        })
    }
}

impl fmt::Debug for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recipe({})", self.name)
    }
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

impl FromStr for Recipe {
    type Err = RecipeError;

    fn from_str(name: &str) -> Result<Self, RecipeError> {
        let unknown = || {
            RecipeError::from(UnknownName::among_patterns(
                "recipe",
                name,
                Self::all().into_iter().map(|info| info.name),
            ))
        };
        registry::find(name).map(|(name, scheme)| Self { name, scheme }).ok_or_else(unknown)
    }
}

impl PartialEq for Recipe {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Recipe {}

impl Hash for Recipe {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for Recipe {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Orders by name.
impl Ord for Recipe {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name.cmp(&other.name)
    }
}

calorimeter_case::written_as_a_name!(
    Recipe,
    "Recipe",
    "a quantization recipe such as baseline or int8wo",
    Recipe::all().into_iter().map(|info| info.name).collect()
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_through_text_and_json() {
        for name in [
            "baseline",
            "baseline-tf32",
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
            "float8dq-tensor-fast",
            "float8dq-row-fast",
            "mxfp8",
            "mxfp4",
            "nvfp4",
            "q8_0",
            "q4_0",
        ] {
            let recipe: Recipe = serde_json::from_value(name.into()).unwrap();
            assert_eq!(recipe.to_string(), name);
            assert_eq!(serde_json::to_value(recipe).unwrap(), name);
        }
    }

    #[test]
    fn aliases_parse_to_canonical_names() {
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
    fn malformed_names_are_rejected() {
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
            "float8dq-fast-row",
            "baseline-fast",
            "FP6",
            "int8_dynamic_activation_intx_weight-4-32-maybe",
            "int8_dynamic_activation_intx_weight-4-32",
            "int8_dynamic_activation_intx_weight-4-0-true",
            "marlin-",
            "mxfp6",
            "q8",
            "Q4_0",
        ] {
            assert!(name.parse::<Recipe>().is_err(), "{name}");
        }
    }

    #[test]
    fn listed_patterns_parse() {
        for info in Recipe::all() {
            for name in calorimeter_case::expand_pattern(&info.name, &["64".into()]) {
                assert!(name.parse::<Recipe>().is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn example_names_round_trip() {
        let listed = registry::families().into_iter().flat_map(|family| family.examples);
        let listed: Vec<&str> = listed.copied().collect();
        assert_eq!(Recipe::examples().iter().map(ToString::to_string).collect::<Vec<_>>(), listed);
    }

    #[test]
    fn misspelled_name_gets_a_suggestion() {
        for (given, nearest) in [
            ("int8w0", Some("int8wo")),
            ("basline", Some("baseline")),
            ("flaot8wo", Some("float8wo")),
            ("INT8WO", Some("int8wo")),
            ("int4w0-128", Some("int4wo-128")),
            ("unitx-3-100-hqq", Some("uintx-3-100-hqq")),
            ("uintx-4-064", Some("uintx-4-64")),
            ("zzz", None),
        ] {
            let error = given.parse::<Recipe>().unwrap_err();
            assert!(
                matches!(&error, RecipeError::UnknownName(unknown) if unknown.nearest.as_deref() == nearest),
                "{error:?}"
            );
        }
    }
}
