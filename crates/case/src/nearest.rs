//! Suggestions for misspelled names, and the error that shows them.

use crate::excerpt;
use crate::name_pattern::{expand_pattern, parse_positive};
use std::fmt;

/// Returns the candidate closest to `name` by edit distance, or `None` if none is close.
pub fn nearest<S: AsRef<str>>(name: &str, candidates: impl IntoIterator<Item = S>) -> Option<S> {
    let name = name.to_lowercase();
    let length = name.chars().count();
    // Maximum edit distance. A larger difference in length rules a candidate out without a comparison.
    let max_distance = |candidate: &S| (candidate.as_ref().len() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| length.abs_diff(candidate.as_ref().chars().count()) <= max_distance(candidate))
        .map(|candidate| (strsim::damerau_levenshtein(&name, candidate.as_ref()), candidate))
        .filter(|(distance, candidate)| *distance <= max_distance(candidate))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Formats a suggestion: `; did you mean "int8wo"?`, or an empty string.
pub fn hint(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name:?}?"))
}

/// Error: unknown name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnknownName {
    /// Category of the name: `recipe`, `device`, …
    pub what: &'static str,
    /// Name as given.
    pub name: String,
    /// Closest known name.
    pub nearest: Option<String>,
    /// All known names, or the patterns of the names.
    pub known: Vec<String>,
}

impl UnknownName {
    /// Creates the error and finds the closest known name.
    pub fn new(what: &'static str, name: &str, known: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let known: Vec<String> = known.into_iter().map(Into::into).collect();
        let nearest = nearest(name, &known).cloned();
        Self { what, name: name.to_owned(), nearest, known }
    }

    /// Creates the error for known names that are patterns, see [`expand_pattern`]. The numbers in the name are
    /// substituted into the patterns before the closest is searched.
    pub fn among_patterns(what: &'static str, name: &str, known: impl IntoIterator<Item = String>) -> Self {
        let known: Vec<String> = known.into_iter().collect();
        let written = name.split(|c: char| !c.is_ascii_digit()).map(|digits| digits.trim_start_matches('0'));
        let numbers = written.filter_map(parse_positive).take(MAX_NUMBERS).map(|n| n.to_string());
        let groups: Vec<String> = numbers.chain(["64".to_owned()]).collect();
        let nearest = nearest(name, known.iter().flat_map(|pattern| expand_pattern(pattern, &groups)));
        Self { what, name: name.to_owned(), nearest, known }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, nearest, known } = self;
        let shown = excerpt(name, 60);
        write!(f, "unknown {what} {shown:?}{}; known: ", hint(nearest.as_deref()))?;
        if known.len() <= MAX_LISTED {
            return write!(f, "{}", known.join(", "));
        }
        let closest = most_similar(&shown, known);
        write!(f, "{} and {} more", closest.join(", "), known.len() - closest.len())
    }
}

/// Maximum numbers of a name that are substituted into patterns; no pattern has more placeholders.
const MAX_NUMBERS: usize = 4;
/// Longer lists of known names are abbreviated.
const MAX_LISTED: usize = 12;
/// Names shown of an abbreviated list, if some are similar.
const MAX_SIMILAR: usize = 3;
/// Names shown of an abbreviated list, if none is similar.
const MAX_EXAMPLES: usize = 5;

/// Minimum Jaro-Winkler similarity of a listed name.
const MIN_SIMILARITY: f64 = 0.7;

/// Returns the known names most similar to `name`, best first; the first known names if none is similar.
fn most_similar<'a>(name: &str, known: &'a [String]) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let similarities = known.iter().map(|known| (strsim::jaro_winkler(&name, known), known.as_str()));
    let mut similar: Vec<(f64, &str)> = similarities.filter(|(similarity, _)| *similarity >= MIN_SIMILARITY).collect();
    similar.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    match similar.as_slice() {
        [] => known.iter().map(String::as_str).take(MAX_EXAMPLES).collect(),
        similar => similar.iter().map(|(_, known)| *known).take(MAX_SIMILAR).collect(),
    }
}

impl std::error::Error for UnknownName {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_get_a_suggestion() {
        let known = ["custom", "llama", "pow2", "small_sweep", "sweep"];
        for (name, expected) in [
            ("pow3", Some("pow2")),
            ("lama", Some("llama")),
            ("Sweep", Some("sweep")),
            ("smallsweep", Some("small_sweep")),
            ("transformer", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), expected, "{name}");
        }
    }

    #[test]
    fn long_lists_show_the_most_similar_names() {
        let known = ["add", "conv2d_bn", "conv2d_bn_relu", "conv2d_relu", "dot", "gelu", "gemm"].map(String::from);
        let similar = most_similar("conv_relu", &known);
        assert_eq!(similar[..3], ["conv2d_relu", "conv2d_bn_relu", "conv2d_bn"]);
        assert_eq!(most_similar("xyz", &known), known[..MAX_EXAMPLES]);
        let long =
            UnknownName::new("operator", "xyz", (0..=MAX_LISTED).map(|index| format!("name{index}"))).to_string();
        assert!(long.contains("name4") && long.contains(" 8 ") && !long.contains("name5"), "{long}");
    }

    #[test]
    fn error_shows_suggestion_and_known_names() {
        let error = UnknownName::new("device", "vulcan", ["cuda", "vulkan"]).to_string();
        for part in ["device", "\"vulcan\"", "\"vulkan\"", "cuda, vulkan"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
