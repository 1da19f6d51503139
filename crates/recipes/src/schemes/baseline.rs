//! `baseline`: the model as it is.

use crate::{Dtype, RecipeError, Scheme, Sparsity, Treatment};
use std::fmt;

/// Nothing quantised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Baseline;

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad("baseline")
    }
}

impl Scheme for Baseline {
    const ABOUT: &'static str = "the model as it is, in its own dtype";

    fn spellings() -> Vec<String> {
        vec!["baseline".into()]
    }

    fn parse(name: &str) -> Option<Self> {
        (name == "baseline").then_some(Self)
    }

    fn takes_semi_structured(&self) -> bool {
        true
    }

    fn treatment(&self, dtype: Dtype, _: Option<Sparsity>) -> Result<Treatment, RecipeError> {
        Ok(Treatment::none(dtype))
    }
}
