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
        let shown = excerpt(name, 60);
        write!(f, "unknown {what} {shown:?}{}; known: ", hint(nearest.as_deref()))?;
        if known.len() <= MOST_LISTED {
            return write!(f, "{}", known.join(", "));
        }
        let closest = closest(&shown, known);
        write!(f, "{} and {} more", closest.join(", "), known.len() - closest.len())
    }
}

/// A reader looks through so many names.
const MOST_LISTED: usize = 12;
/// Of more than that, so many.
const CLOSEST: usize = 5;

/// Names that are less like each other have nothing in common.
const ALIKE: f64 = 0.7;

/// Those of many known names that are most like this one, the most alike first; the first of all where none is.
fn closest<'a>(name: &str, known: &'a [String]) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let alike = known.iter().map(|known| (strsim::jaro_winkler(&name, known), known.as_str()));
    let mut alike: Vec<(f64, &str)> = alike.filter(|(alike, _)| *alike >= ALIKE).collect();
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    match alike.as_slice() {
        [] => known.iter().map(String::as_str).take(CLOSEST).collect(),
        alike => alike.iter().map(|(_, known)| *known).take(CLOSEST).collect(),
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
    fn of_many_known_names_those_that_are_most_alike_are_listed() {
        let known = ["add", "axpy", "conv2d_bn", "conv2d_bn_relu", "conv2d_relu", "dot", "gelu", "gemm", "gemv"];
        let more = ["layer_norm", "linear_bias", "linear_bias_relu", "rms_norm", "softmax"];
        let error = UnknownName::new("operator", "conv_relu", known.into_iter().chain(more)).to_string();
        let list = error.strip_prefix(r#"unknown operator "conv_relu"; did you mean "conv2d_relu"?; known: "#).unwrap();
        assert!(list.starts_with("conv2d_relu, conv2d_bn_relu, conv2d_bn") && list.ends_with(" more"), "{error}");
        let strange = UnknownName::new("operator", "xyz", known.into_iter().chain(more)).to_string();
        assert_eq!(
            strange,
            "unknown operator \"xyz\"; known: add, axpy, conv2d_bn, conv2d_bn_relu, conv2d_relu and 9 more"
        );
    }

    #[test]
    fn the_error_names_what_was_meant_and_what_is_known() {
        let error = UnknownName::new("device", "vulcan", ["cuda", "vulkan"]).to_string();
        assert_eq!(error, r#"unknown device "vulcan"; did you mean "vulkan"?; known: cuda, vulkan"#);
    }
}
