//! What can be wrong with a recipe.

use crate::names::{number, spelled_out};

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// No recipe, sparsity or dtype has this name.
    #[error("unknown {what} {name:?}{}; known: {}", hint(.nearest.as_deref()), .known.join(", "))]
    Unknown {
        /// What was being named: "recipe", "sparsity", "dtype".
        what: &'static str,
        /// The name that was given.
        name: String,
        /// The known name that is closest to it.
        nearest: Option<String>,
        /// Every known spelling.
        known: Vec<String>,
    },
    /// The recipe cannot be run this way; the text says what would make it run.
    #[error("{0}")]
    Unsupported(String),
    /// No finite scale or zero covers some of the weight.
    #[error(
        "the weight cannot be quantised: group {group} of row {row} holds an infinity or a NaN, \
         or numbers too large for a scale or zero in its dtype"
    )]
    NotFinite {
        /// The row, which is an output channel.
        row: usize,
        /// The group of numbers that share a scale, counted in the row.
        group: usize,
    },
    /// A layer of a module cannot be quantised.
    #[error("{path}: {cause}")]
    Layer {
        /// Where in the module the layer is.
        path: String,
        /// Why not.
        cause: Box<Self>,
    },
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

impl RecipeError {
    /// The error for a name that is not among the known ones.
    pub fn unknown(what: &'static str, name: &str, known: impl IntoIterator<Item = String>) -> Self {
        let known: Vec<String> = known.into_iter().collect();
        let nearest = nearest(name, &known);
        Self::Unknown { what, name: name.to_owned(), nearest, known }
    }
}

/// The known name that looks most like the given one, if any is close; patterns are filled with the numbers of the name.
fn nearest(name: &str, known: &[String]) -> Option<String> {
    let written = name.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.trim_start_matches('0'));
    let groups: Vec<String> = written.filter_map(number).map(|n| n.to_string()).chain(["64".to_owned()]).collect();
    known
        .iter()
        .flat_map(|pattern| spelled_out(pattern, &groups))
        .map(|candidate| (strsim::damerau_levenshtein(&name.to_lowercase(), &candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
