//! What can be wrong with a recipe.

use crate::names::{number, spelled_out};
use calorimeter_case::{UnknownName, nearest};

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// No recipe, sparsity or dtype has this name.
    #[error(transparent)]
    Unknown(#[from] UnknownName),
    /// A recipe is to be registered under a name that stands for another.
    #[error("the recipe {name:?} is registered already; choose another name")]
    Taken {
        /// The name.
        name: String,
    },
    /// A recipe is to be registered under a name that it does not read itself.
    #[error("a recipe lists the name {name:?} and does not read it")]
    Unreadable {
        /// The name.
        name: String,
    },
    /// The recipe cannot be run this way; the text says what would make it run.
    #[error("{0}")]
    Unsupported(String),
    /// No finite scale or zero covers some of the weight.
    #[error(
        "the weight cannot be quantized: group {group} of row {row} holds an infinity or a NaN, \
         or numbers too large for a scale or zero in its dtype"
    )]
    NotFinite {
        /// The row, which is an output channel.
        row: usize,
        /// The group of numbers that share a scale, counted in the row.
        group: usize,
    },
    /// A layer of a module cannot be quantized.
    #[error("{path}: {cause}")]
    Layer {
        /// Where in the module the layer is.
        path: String,
        /// Why not.
        cause: Box<Self>,
    },
}

/// No pattern has as many; each is tried in every place of each.
const MOST_NUMBERS: usize = 4;

impl RecipeError {
    /// The error for a name that is not among the known ones; patterns are filled with the numbers of the name.
    pub fn unknown(what: &'static str, name: &str, known: impl IntoIterator<Item = String>) -> Self {
        let known: Vec<String> = known.into_iter().collect();
        let written = name.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.trim_start_matches('0'));
        let groups: Vec<String> =
            written.filter_map(number).take(MOST_NUMBERS).map(|n| n.to_string()).chain(["64".to_owned()]).collect();
        let meant = nearest(name, known.iter().flat_map(|pattern| spelled_out(pattern, &groups)));
        Self::Unknown(UnknownName::new(what, name, known).suggesting(meant))
    }
}
