//! YAML parsing with errors that state position and remedy.

mod bounds;
mod events;
mod place;
mod syntax;

pub(super) use bounds::MAX_FILE_BYTES;
pub(super) use place::Step;

use super::ConfigSource;
use crate::entries::ConfigError;
use calorimeter_case::{UnknownName, excerpt};
use events::Mark;
use serde::de::DeserializeOwned;
use std::path::Path;

/// Checks the limits and the syntax of a file.
pub(super) fn check(source: &ConfigSource) -> Result<(), ConfigError> {
    let text = without_byte_order_mark(&source.text);
    bounds::check(text).map_err(|message| ConfigError::invalid(source.path.clone(), message))?;
    syntax::check(text).map_err(|error| error_at(source, error.at, error.cause.to_string()))
}

/// Parses a file. Errors start with the position, and suggest a correction for misspelled keys.
pub(super) fn parse<T: DeserializeOwned>(source: &ConfigSource) -> Result<T, ConfigError> {
    serde_yaml::from_str(without_byte_order_mark(&source.text)).map_err(|error| invalid(&source.path, &error))
}

/// Creates an error at a value of a file, or at the innermost list or map around it.
pub(super) fn invalid_at(source: &ConfigSource, path: &[Step], message: impl Into<String>) -> ConfigError {
    error_at(source, place::position(without_byte_order_mark(&source.text), path), message)
}

fn error_at(source: &ConfigSource, mark: Mark, message: impl Into<String>) -> ConfigError {
    let place = format!(":{}:{}", mark.line + 1, mark.column + 1);
    ConfigError::Invalid { path: source.path.clone(), place, message: message.into() }
}

/// Removes a leading byte order mark.
pub(super) fn without_byte_order_mark(text: &str) -> &str {
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
        message: excerpt(&escape_control_characters(&suggest(expected_first(message))), EXCERPT_LENGTH),
    }
}

/// Rewrites serde's messages about values of the wrong type: expected value first, in terms of YAML.
fn expected_first(message: String) -> String {
    let kinds = ["invalid type: ", "invalid value: "].into_iter();
    let Some((before, rest)) = kinds.filter_map(|kind| message.split_once(kind)).next() else { return message };
    let Some((found, expected)) = rest.split_once(", expected ") else { return message };
    let expected = match expected {
        "a sequence" => "a list such as [a, b]",
        "a map" => "a map such as {a: 1}",
        "a boolean" => "true or false",
        "a string" => "a text",
        "a YAML tag starting with '!'" => "a single word",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number",
        "f32" | "f64" => "a number",
        other => other,
    };
    // A number or text follows the name of its type, as in: integer `1`, string "a".
    let value = ["integer ", "floating point ", "boolean ", "string "].iter().find_map(|kind| found.strip_prefix(kind));
    let found = match found {
        "sequence" => "a list",
        "map" => "a map",
        "unit value" => "no value",
        other => value.map_or(other, |value| value.trim_matches('`')),
    };
    format!("{before}expected {expected}, found {found}")
}

/// Rewrites serde's messages about keys and words, and suggests the nearest known one.
fn suggest(message: String) -> String {
    if let Some((before, key)) = message.split_once("duplicate field `") {
        return format!(
            "{before}duplicate key {:?}, possibly under an alternative name; keep one",
            key.trim_end_matches('`')
        );
    }
    for (kind, what, remedy) in
        [("unknown variant `", "value", ""), ("unknown field `", "key", "; see `calorimeter schema`")]
    {
        if let Some((before, rest)) = message.split_once(kind)
            && let Some((name, known)) = rest.split_once('`')
        {
            let unknown = UnknownName::new(what, name, known.split('`').skip(1).step_by(2));
            return format!("{before}{unknown}{remedy}");
        }
    }
    message
}

/// Escapes control characters, which a terminal would interpret.
fn escape_control_characters(message: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    message.chars().map(escaped).collect()
}

/// Maximum characters kept at each end of a message; enough for every list of known names.
const EXCERPT_LENGTH: usize = 1000;
