//! Text in tables that spreadsheets open: one that begins like a formula would be computed, and may start programs.

use std::borrow::Cow;

/// The text as a spreadsheet shows it: what begins like a formula gets an apostrophe before it.
pub fn as_text(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() > 1 && text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}").into() } else { text }
}
