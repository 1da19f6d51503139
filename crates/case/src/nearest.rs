//! "Did you mean": the known word that a misspelt one is closest to, and the error that says so.

use crate::excerpt;
use std::fmt;

/// The candidate that a reader most likely meant, or `None` where none is close.
pub fn nearest<S: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = S>) -> Option<S> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    // How many letters may differ. Names of very different lengths differ in more, and need not be compared.
    let most = |candidate: &S| (candidate.as_ref().len() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| length.abs_diff(candidate.as_ref().chars().count()) <= most(candidate))
        .map(|candidate| (strsim::damerau_levenshtein(&name, candidate.as_ref()), candidate))
        .filter(|(distance, candidate)| *distance <= most(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean "int8wo"?`, or nothing.
pub fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

/// Nothing has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName {
    /// What was being named: `recipe`, `device`, …
    pub what: &'static str,
    /// The name that was given.
    pub name: String,
    /// The known name that is closest to it.
    pub nearest: Option<String>,
    /// Every known name, or the patterns of the names.
    pub known: Vec<String>,
}

impl UnknownName {
    /// The error for a name that is not among the known ones.
    pub fn new(what: &'static str, name: &str, known: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let known: Vec<String> = known.into_iter().map(Into::into).collect();
        let nearest = nearest(name, &known).cloned();
        Self { what, name: name.to_owned(), nearest, known }
    }

    /// The same with another suggestion, where the known names are patterns.
    pub fn suggesting(self, nearest: Option<String>) -> Self {
        Self { nearest, ..self }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, nearest, known } = self;
        let name = excerpt(name, 60);
        write!(f, "unknown {what} {name:?}{}; known: {}", hint(nearest.as_deref()), known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_mended_and_a_stranger_is_not() {
        let known = ["custom", "llama", "pow2", "small_sweep", "sweep"];
        for (found, expected) in [
            ("pow3", Some("pow2")),
            ("lama", Some("llama")),
            ("Sweep", Some("sweep")),
            ("smallsweep", Some("small_sweep")),
            ("transformer", None),
            ("", None),
        ] {
            assert_eq!(nearest(found, known), expected, "{found}");
        }
    }

    #[test]
    fn the_error_names_what_was_meant_and_what_is_known() {
        let error = UnknownName::new("device", "vulcan", ["cuda", "vulkan"]).to_string();
        assert_eq!(error, r#"unknown device "vulcan"; did you mean "vulkan"?; known: cuda, vulkan"#);
    }
}
