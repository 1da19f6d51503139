//! YAML parsing with errors that state position and remedy.

mod bounds;
mod events;

pub use bounds::MAX_FILE_BYTES;

use super::ConfigSource;
use crate::entries::ConfigError;
use calorimeter_case::{UnknownName, excerpt};
use serde::de::DeserializeOwned;
use std::path::Path;

/// Checks a file against the limits on its size.
pub fn check(source: &ConfigSource) -> Result<(), ConfigError> {
    bounds::check(without_byte_order_mark(&source.text))
        .map_err(|message| ConfigError::invalid(source.path.clone(), message))
}

/// Parses a file. Errors start with the position, and suggest a correction for misspelled keys.
pub fn parse<T: DeserializeOwned>(source: &ConfigSource) -> Result<T, ConfigError> {
    serde_yaml::from_str(without_byte_order_mark(&source.text)).map_err(|error| invalid(&source.path, &error))
}

/// Removes a leading byte order mark.
pub fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn invalid(path: &Path, error: &serde_yaml::Error) -> ConfigError {
    let place = error.location().map_or_else(String::new, |at| format!(":{}:{}", at.line(), at.column()));
    let mut message = error.to_string();
    if let Some(at) = error.location() {
        message = message.replace(&format!(" at line {} column {}", at.line(), at.column()), "");
    }
    ConfigError::Invalid {
        path: path.to_owned(),
        place,
        message: excerpt(&escape_control_characters(&suggest(message)), EXCERPT_LENGTH),
    }
}

/// Rewrites serde's messages about keys, and suggests the nearest known key.
fn suggest(message: String) -> String {
    if let Some((before, key)) = message.split_once("duplicate field `") {
        return format!(
            "{before}duplicate key {:?}, possibly under an alternative name; keep one",
            key.trim_end_matches('`')
        );
    }
    let Some((before, rest)) = message.split_once("unknown field `") else { return message };
    let Some((key, known)) = rest.split_once('`') else { return message };
    let unknown = UnknownName::new("key", key, known.split('`').skip(1).step_by(2));
    format!("{before}{unknown}; see `calorimeter schema`")
}

/// Escapes control characters, which a terminal would interpret.
fn escape_control_characters(message: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    message.chars().map(escaped).collect()
}

/// Maximum characters kept at each end of a message; enough for every list of known names.
const EXCERPT_LENGTH: usize = 1000;
