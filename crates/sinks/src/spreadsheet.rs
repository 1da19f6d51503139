//! Text for tables that spreadsheets open, which would execute text that looks like a formula.

use std::borrow::Cow;

/// Prefixes text that looks like a formula with an apostrophe.
pub(crate) fn escape_formula(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() > 1 && text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}").into() } else { text }
}
