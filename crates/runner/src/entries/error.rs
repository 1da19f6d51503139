//! Errors in configurations.

use std::path::PathBuf;

/// Errors of reading and resolving configurations.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Unreadable file.
    #[error("cannot read {}: {cause}", .path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        cause: std::io::Error,
    },
    /// Invalid content.
    #[error("{}{place}: {message}", .path.display())]
    Invalid {
        /// Path of the file.
        path: PathBuf,
        /// `:line:column`, if known.
        place: String,
        /// Problem and remedy.
        message: String,
    },
}

impl ConfigError {
    /// Creates an error without a position, for values that are only invalid in combination.
    pub fn invalid(path: PathBuf, message: impl Into<String>) -> Self {
        Self::Invalid { path, place: String::new(), message: message.into() }
    }
}
