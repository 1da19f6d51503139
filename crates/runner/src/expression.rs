//! Regular expressions as people give them; what is wrong with one is said in one line.

use regex::Regex;

/// A text that is no regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{pattern:?} is no regular expression: {cause}")]
pub struct NoExpression {
    pattern: String,
    cause: String,
}

/// Reads an expression.
pub fn parse(pattern: &str) -> Result<Regex, NoExpression> {
    Regex::new(pattern).map_err(|error| {
        // The parser draws the place over several lines; the last one says what is wrong.
        let drawing = error.to_string();
        let last = drawing.lines().last().unwrap_or_default();
        NoExpression { pattern: pattern.to_owned(), cause: last.trim_start_matches("error: ").to_owned() }
    })
}
