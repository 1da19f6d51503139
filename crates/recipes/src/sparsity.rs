//! Sparsity of weights, by the names torchao's configuration files use.

use crate::RecipeError;
use crate::names::written_as_a_name;
use std::{fmt, str::FromStr};

/// How a weight is made sparse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sparsity {
    /// Two of every four values along K.
    SemiStructured,
    /// Whole blocks.
    Block,
}

const SPELLINGS: [(Sparsity, &str); 3] =
    [(Sparsity::SemiStructured, "semi-sparse"), (Sparsity::SemiStructured, "2:4"), (Sparsity::Block, "block")];

impl fmt::Display for Sparsity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::SemiStructured => "semi-sparse",
            Self::Block => "block",
        })
    }
}

impl FromStr for Sparsity {
    type Err = RecipeError;

    fn from_str(name: &str) -> Result<Self, RecipeError> {
        SPELLINGS
            .iter()
            .find(|(_, spelling)| *spelling == name)
            .map(|(sparsity, _)| *sparsity)
            .ok_or_else(|| RecipeError::unknown("sparsity", name, SPELLINGS.iter().map(|(_, s)| s.to_string())))
    }
}

written_as_a_name!(
    Sparsity,
    "Sparsity",
    "a sparsity: semi-sparse (also written 2:4) or block",
    SPELLINGS.iter().map(|(_, s)| s.to_string()).collect()
);
