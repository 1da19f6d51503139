//! Text as it may go to a terminal: names and reasons come from files and drivers, and an escape sequence in one of them
//! would be obeyed.

use std::borrow::Cow;

/// The same with every control character spelled out, but for the ends of lines, tabs, and the colours that we write.
pub fn shown(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(harmless) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for (at, c) in text.char_indices() {
        if harmless(c) || is_colour(&text[at..]) {
            shown.push(c);
        } else {
            // JSON stays JSON.
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        }
    }
    shown.into()
}

/// Whether text begins with a sequence that sets colours and does nothing else.
fn is_colour(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("\x1b[") else { return false };
    rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_spelled_out_and_colours_are_kept() {
        for (text, expected) in [
            ("a\tµ\n", "a\tµ\n"),
            ("\x1b[32mFASTER\x1b[0m", "\x1b[32mFASTER\x1b[0m"),
            ("\x1b]0;title\x07", "\\u001b]0;title\\u0007"),
            ("\x1b[2J\x1b[31", "\\u001b[2J\\u001b[31"),
            ("back\rspace\u{9b}31m\x7f", "back\\u000dspace\\u009b31m\\u007f"),
        ] {
            assert_eq!(shown(text), expected);
        }
    }
}
