//! Regular expressions from users, with errors on one line.

use regex::Regex;

/// Error for an invalid regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid regular expression {pattern:?}: {cause}")]
pub struct InvalidRegex {
    pattern: String,
    cause: String,
}

/// Parses a regular expression.
pub(crate) fn parse(pattern: &str) -> Result<Regex, InvalidRegex> {
    Regex::new(pattern).map_err(|error| {
        // The parser marks the position over several lines; the last line holds the reason.
        let message = error.to_string();
        let last = message.lines().last().unwrap_or_default();
        InvalidRegex { pattern: pattern.to_owned(), cause: last.trim_start_matches("error: ").to_owned() }
    })
}
