//! Exact parsing of numbers in names, and expansion of name patterns.

/// Parses a positive integer in canonical spelling: no sign, no leading zeros.
pub fn parse_positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| *number > 0 && number.to_string() == text)
}

/// Expands a pattern into names: `{a|b}` is one of the alternatives, `[a|b]` nothing or an alternative, `{group}` one
/// of `groups`.
pub fn expand_pattern(pattern: &str, groups: &[String]) -> Vec<String> {
    let (Some(start), Some(end)) = (pattern.find(['{', '[']), pattern.find(['}', ']'])) else {
        return vec![pattern.to_owned()];
    };
    let (before, inside, after) = (&pattern[..start], &pattern[start + 1..end], &pattern[end + 1..]);
    let mut choices: Vec<&str> = match inside {
        "group" => groups.iter().map(String::as_str).collect(),
        _ => inside.split('|').collect(),
    };
    if pattern[start..].starts_with('[') {
        choices.insert(0, "");
    }
    let rest = expand_pattern(after, groups);
    choices.iter().flat_map(|choice| rest.iter().map(move |rest| format!("{before}{choice}{rest}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_spelling() {
        assert_eq!((parse_positive("1"), parse_positive("128")), (Some(1), Some(128)));
        for text in ["", "0", "064", "+1", "-1", "1 ", "4294967296"] {
            assert_eq!(parse_positive(text), None, "{text}");
        }
    }

    #[test]
    fn pattern_expands_to_all_names() {
        let names = expand_pattern("a-{1|2}-{group}[-x]", &["64".into()]);
        assert_eq!(names, ["a-1-64", "a-1-64-x", "a-2-64", "a-2-64-x"]);
        assert_eq!(expand_pattern("plain", &[]), ["plain"]);
    }
}
