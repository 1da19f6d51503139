//! Name comparison that accepts other spellings, such as `LayerNorm` for `layer_norm`.

/// Compares two names, ignoring case, underscores and hyphens.
pub fn is_loosely(word: &str, name: &str) -> bool {
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
    fn capitals_and_joints_do_not_count_and_letters_do() {
        for word in ["layer_norm", "LayerNorm", "Layer-Norm", "LAYERNORM"] {
            assert!(is_loosely(word, "layer_norm"), "{word}");
        }
        assert!(!is_loosely("layer_norms", "layer_norm") && !is_loosely("", "layer_norm"));
    }
}
