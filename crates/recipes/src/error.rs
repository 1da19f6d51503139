//! What can be wrong with a recipe.

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
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

impl RecipeError {
    /// The error for a name that is not among the known ones.
    pub fn unknown(what: &'static str, name: &str, known: impl IntoIterator<Item = String>) -> Self {
        let known: Vec<String> = known.into_iter().collect();
        let nearest = nearest(name, known.iter().map(String::as_str)).map(str::to_owned);
        Self::Unknown { what, name: name.to_owned(), nearest, known }
    }
}

/// The known name that looks most like the given one, if any is close.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|candidate| (strsim::damerau_levenshtein(&name.to_lowercase(), candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
