//! Regular expressions for patterns of names.

/// Converts a pattern of names to a regular expression: `{a|b}` is an alternative, `[a|b]` an optional one,
/// `{0.01..0.99}` a fraction in hundredths, and `{group}` or any other word an integer from 1.
pub(super) fn pattern(spelling: &str) -> String {
    let mut expression = String::from("^");
    let mut rest = spelling;
    while let Some(start) = rest.find(['{', '[']) {
        let end = rest[start..].find(['}', ']']).map_or(rest.len(), |length| start + length);
        let (inside, optional) = (&rest[start + 1..end], rest[start..].starts_with('['));
        expression.push_str(&literal(&rest[..start]));
        expression.push_str(&match inside {
            _ if inside.contains('|') || optional => format!("({})", alternatives(inside)),
            _ if inside.contains("..") => "0\\.([1-9][0-9]?|0[1-9])".into(),
            _ => "[1-9][0-9]*".into(),
        });
        if optional {
            expression.push('?');
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    expression.push_str(&literal(rest));
    expression + "$"
}

/// Editors reject an escaped hyphen.
fn literal(text: &str) -> String {
    regex::escape(text).replace("\\-", "-")
}

fn alternatives(inside: &str) -> String {
    inside.split('|').map(literal).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use calorimeter_recipes::{Recipe, Sparsity};
    use regex::Regex;

    #[test]
    fn patterns_match_their_names() {
        assert_eq!(pattern("a-{1|2}-{group}[-x]"), "^a-(1|2)-[1-9][0-9]*(-x)?$");
        let matches = |spelling: &str, name: &str| Regex::new(&pattern(spelling)).unwrap().is_match(name);
        for name in ["block-0.9-64", "block-0.75-32", "block-0.05-16", "block-0.90-8"] {
            assert!(matches("block-{0.01..0.99}-{side}", name) && name.parse::<Sparsity>().is_ok(), "{name}");
        }
        for name in ["block-0.00-64", "block-0.0-64", "block-1.0-64", "block-0.9-0", "block-0.999-64", "block-0.9"] {
            assert!(!matches("block-{0.01..0.99}-{side}", name) && name.parse::<Sparsity>().is_err(), "{name}");
        }
    }

    #[test]
    fn recipes_parse_exactly_where_patterns_match() {
        let patterns: Vec<Regex> = Recipe::all().iter().map(|info| Regex::new(&pattern(&info.name)).unwrap()).collect();
        let typical = Recipe::examples().iter().map(ToString::to_string).collect::<Vec<_>>();
        let odd =
            ["int4wo-33", "int4wo-32-", "uintx-9-64", "uintx-4-064", "gemlitewo-4-64-32", "int8", "float8dq-rows"];
        for name in typical.iter().map(String::as_str).chain(odd) {
            let matched = patterns.iter().any(|pattern| pattern.is_match(name));
            assert_eq!(matched, name.parse::<Recipe>().is_ok(), "{name}");
        }
    }
}
