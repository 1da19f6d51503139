//! What can be wrong with a configuration, said where it is.

use calorimeter_case::{hint, nearest};
use std::path::PathBuf;

/// Errors of reading and resolving configuration files.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file does not say anything that can be run.
    #[error("{}{place}: {message}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// `:line:column`, where one is known.
        place: String,
        /// What is wrong and how to mend it.
        message: String,
    },
}

impl ConfigError {
    /// From what the YAML reader says: position first, a suggestion for a misspelt key.
    pub fn yaml(path: PathBuf, error: &serde_yaml::Error) -> Self {
        let place = error.location().map_or_else(String::new, |at| format!(":{}:{}", at.line(), at.column()));
        let mut message = error.to_string();
        if let Some(at) = error.location() {
            message = message.replace(&format!(" at line {} column {}", at.line(), at.column()), "");
        }
        Self::Invalid { path, place, message: shorten(suggest(message)) }
    }

    /// Without a position: the value is right by itself but not with the others.
    pub fn invalid(path: PathBuf, message: impl Into<String>) -> Self {
        Self::Invalid { path, place: String::new(), message: message.into() }
    }
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

/// Cuts the middle out of a message that repeats a very long value.
fn shorten(message: String) -> String {
    let characters = message.chars().count();
    if characters <= 2 * KEPT {
        return message;
    }
    let head: String = message.chars().take(KEPT).collect();
    let tail: String = message.chars().skip(characters - KEPT).collect();
    format!("{head} […] {tail}")
}

/// Characters kept at both ends of a message: enough for every list of known names.
const KEPT: usize = 1000;
