//! Name comparison that accepts other spellings, such as `LayerNorm` for `layer_norm`.

/// Compares two names, ignoring case, underscores and hyphens.
pub fn names_match(word: &str, name: &str) -> bool {
    let letters = |text: &'_ str| {
        let all = text.chars().filter(|letter| !matches!(letter, '_' | '-'));
        all.flat_map(char::to_lowercase).collect::<Vec<_>>()
    };
    letters(word) == letters(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_separators_are_ignored() {
        for word in ["layer_norm", "LayerNorm", "Layer-Norm", "LAYERNORM"] {
            assert!(names_match(word, "layer_norm"), "{word}");
        }
        assert!(!names_match("layer_norms", "layer_norm") && !names_match("", "layer_norm"));
    }
}
