//! Exact parsing of numbers in names, and expansion of name patterns.

/// Parses a positive integer in canonical spelling: no sign, no leading zeros.
pub(crate) fn number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| *number > 0 && number.to_string() == text)
}

/// Expands a pattern into names: `{a|b}` is one of the alternatives, `[a|b]` an alternative or nothing, `{group}` one
/// of `groups`.
pub(crate) fn spelled_out(pattern: &str, groups: &[String]) -> Vec<String> {
    let (Some(start), Some(end)) = (pattern.find(['{', '[']), pattern.find(['}', ']'])) else {
        return vec![pattern.to_owned()];
    };
    let (before, inside, after) = (&pattern[..start], &pattern[start + 1..end], &pattern[end + 1..]);
    let mut choices: Vec<&str> = match inside {
        "group" => groups.iter().map(String::as_str).collect(),
        _ => inside.split('|').collect(),
    };
    if pattern[start..].starts_with('[') {
        choices.push("");
    }
    let rest = spelled_out(after, groups);
    choices.iter().flat_map(|choice| rest.iter().map(move |rest| format!("{before}{choice}{rest}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_in_one_way() {
        assert_eq!((number("1"), number("128")), (Some(1), Some(128)));
        for text in ["", "0", "064", "+1", "-1", "1 ", "4294967296"] {
            assert_eq!(number(text), None, "{text}");
        }
    }

    #[test]
    fn a_pattern_stands_for_all_its_names() {
        let names = spelled_out("a-{1|2}-{group}[-x]", &["64".into()]);
        assert_eq!(names, ["a-1-64-x", "a-1-64", "a-2-64-x", "a-2-64"]);
        assert_eq!(spelled_out("plain", &[]), ["plain"]);
    }
}
