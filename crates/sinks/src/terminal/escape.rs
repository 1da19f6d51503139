//! Escaping of text for terminals: names and messages come from files and drivers and may contain escape sequences.

use std::borrow::Cow;

/// Sequences of `paint` after the escape character.
const COLORS: [&str; 6] = ["[0m", "[1m", "[2m", "[31m", "[32m", "[33m"];

/// Escapes control characters, including line feeds, and bidirectional overrides. For text within a line.
pub fn escape(text: &str) -> Cow<'_, str> {
    escape_except(text, &[])
}

/// Escapes control characters and bidirectional overrides; line feeds and tabs are kept.
pub fn escape_lines(text: &str) -> Cow<'_, str> {
    escape_except(text, &['\n', '\t'])
}

/// Like [`escape_lines`], but keeps the colors of tables. The cells of a table must be escaped already.
pub fn escape_table(text: &str) -> String {
    let mut parts = text.split('\x1b');
    let mut escaped = escape_lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        escaped += if COLORS.iter().any(|color| part.starts_with(color)) { "\x1b" } else { "\\u001b" };
        escaped += &escape_lines(part);
    }
    escaped
}

/// True for characters that a terminal interprets instead of printing them.
pub(super) fn is_interpreted(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape_except<'a>(text: &'a str, kept: &[char]) -> Cow<'a, str> {
    let is_escaped = |c: char| is_interpreted(c) && !kept.contains(&c);
    if !text.contains(is_escaped) {
        return text.into();
    }
    // The escape is valid JSON, so that JSON output stays JSON.
    let replaced = |c: char| if is_escaped(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    text.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreted_characters_are_escaped() {
        for (text, expected) in [
            ("a\tµ\n", "a\tµ\n"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("\x1b[2J\x1b[31", "\\u001b[2J\\u001b[31"),
            ("\x1b[8mhidden", "\\u001b[8mhidden"),
            ("\u{202e}gnp.exe", "\\u202egnp.exe"),
            ("back\rspace\u{9b}31m\x7f", "back\\u000dspace\\u009b31m\\u007f"),
        ] {
            assert_eq!(escape_lines(text), expected);
            assert_eq!(escape_table(text), expected);
        }
        assert_eq!(escape("a\tb\n\x1b[31m"), "a\\u0009b\\u000a\\u001b[31m");
    }

    #[test]
    fn only_tables_keep_colors() {
        let text = "\x1b[32mFASTER\x1b[0m";
        assert_eq!(escape_table(text), text);
        assert_eq!(escape_lines(text), "\\u001b[32mFASTER\\u001b[0m");
    }
}
