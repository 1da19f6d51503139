//! What can go wrong with a workload.

use calorimeter_recipes::RecipeError;

/// Errors of this crate.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ZooError {
    /// No model, device or implementation has this name.
    #[error("unknown {what} {name:?}{}; known: {}", hint(.nearest.as_deref()), .known.join(", "))]
    Unknown {
        /// What was being named.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// The known name that is closest to it.
        nearest: Option<String>,
        /// Every known name.
        known: Vec<String>,
    },
    /// The combination cannot be run; the text says what would make it run.
    #[error("{0}")]
    Unsupported(String),
    /// Sizes that an operator cannot have.
    #[error("{0}")]
    Shape(String),
    /// A weight cannot be quantised.
    #[error(transparent)]
    Weight(RecipeError),
    /// The device or a library under it reported an error.
    #[error("{0}")]
    Device(String),
}

fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

impl ZooError {
    /// The error for a name that is not among the known ones.
    pub(crate) fn unknown(what: &'static str, name: &str, known: Vec<String>) -> Self {
        let close = |candidate: &&String| {
            strsim::damerau_levenshtein(&name.to_lowercase(), candidate) <= (candidate.len() / 3).max(1)
        };
        let nearest =
            known.iter().filter(close).min_by_key(|candidate| strsim::damerau_levenshtein(name, candidate)).cloned();
        Self::Unknown { what, name: name.to_owned(), nearest, known }
    }
}

impl From<RecipeError> for ZooError {
    fn from(error: RecipeError) -> Self {
        match error {
            RecipeError::NotFinite { .. } => Self::Weight(error),
            other => Self::Unsupported(other.to_string()),
        }
    }
}
