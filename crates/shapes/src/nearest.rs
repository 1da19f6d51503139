//! "Did you mean": the known word that a misspelt one is closest to.

/// The known word a reader most likely meant, or `None` when none is close.
pub(crate) fn nearest<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|word| (strsim::jaro_winkler(&found.to_lowercase(), word), word))
        .filter(|(likeness, _)| *likeness >= 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, word)| word)
}

/// ` did you mean "pow2"?`, or nothing.
pub(crate) fn hint(found: &str, known: &[&str]) -> String {
    match nearest(found, known.iter().copied()) {
        Some(word) => format!(" did you mean {word:?}?"),
        None => String::new(),
    }
}

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
}
