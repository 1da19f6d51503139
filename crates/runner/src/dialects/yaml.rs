//! What the YAML reader says, said where it is and with the way out.

mod bounds;
mod events;

pub use bounds::MOST_BYTES;

use super::Source;
use crate::entries::ConfigError;
use calorimeter_case::{excerpt, hint, nearest};
use serde::de::DeserializeOwned;
use std::path::Path;

/// Whether a file is within the bounds of what is read.
pub fn check(source: &Source) -> Result<(), ConfigError> {
    bounds::check(without_mark(&source.text)).map_err(|message| ConfigError::invalid(source.path.clone(), message))
}

/// Reads a text; an error has its position first, and a suggestion for a misspelt key.
pub fn parse<T: DeserializeOwned>(source: &Source) -> Result<T, ConfigError> {
    serde_yaml::from_str(without_mark(&source.text)).map_err(|error| invalid(&source.path, &error))
}

/// The text without the mark of its encoding, which some editors put before it.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn invalid(path: &Path, error: &serde_yaml::Error) -> ConfigError {
    let place = error.location().map_or_else(String::new, |at| format!(":{}:{}", at.line(), at.column()));
    let mut message = error.to_string();
    if let Some(at) = error.location() {
        message = message.replace(&format!(" at line {} column {}", at.line(), at.column()), "");
    }
    ConfigError::Invalid { path: path.to_owned(), place, message: excerpt(&visible(&suggest(message)), KEPT) }
}

/// Serde's sentences about keys in the words of this program, with the nearest known key beside an unknown one.
fn suggest(message: String) -> String {
    if let Some((before, key)) = message.split_once("duplicate field `") {
        return format!("{before}key {:?} is given twice, or by two of its names; keep one", key.trim_end_matches('`'));
    }
    let Some((before, rest)) = message.split_once("unknown field `") else { return message };
    let Some((key, known)) = rest.split_once('`') else { return message };
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let hint = hint(nearest(key, known.iter().copied()));
    format!("{before}unknown key {key:?}{hint}; known: {}", known.join(", "))
}

/// Control characters of names and keys as they would be written: a terminal would obey them.
fn visible(message: &str) -> String {
    let written = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    message.chars().map(written).collect()
}

/// Characters kept at both ends of a message: enough for every list of known names.
const KEPT: usize = 1000;
