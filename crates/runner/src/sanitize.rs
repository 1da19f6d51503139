//! Escaping of text for terminals: names and messages come from files and drivers and may contain escape sequences.

use std::borrow::Cow;

/// Escape sequences that are passed through: the colors of this program's tables and the reset.
const ALLOWED_COLORS: [&str; 5] = ["\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"];

/// Escapes control characters and bidirectional overrides. Newlines, tabs and the colors of this program are kept.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let harmless = |c: char| (!c.is_control() && !turns(c)) || c == '\n' || c == '\t';
    if text.chars().all(harmless) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if harmless(c) || ALLOWED_COLORS.iter().any(|color| text[at..].starts_with(color)) {
            shown.push(c);
        } else {
            // The escape is valid JSON, so that JSON output stays JSON.
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_escaped_except_colors() {
        for (text, expected) in [
            ("a\tµ\n", "a\tµ\n"),
            ("\x1b[32mFASTER\x1b[0m", "\x1b[32mFASTER\x1b[0m"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("\x1b[2J\x1b[31", "\\u001b[2J\\u001b[31"),
            ("\x1b[8mhidden", "\\u001b[8mhidden"),
            ("\u{202e}gnp.exe", "\\u202egnp.exe"),
            ("back\rspace\u{9b}31m\x7f", "back\\u000dspace\\u009b31m\\u007f"),
        ] {
            assert_eq!(sanitize(text), expected);
        }
    }
}
