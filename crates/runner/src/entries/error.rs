//! What can be wrong with a configuration, said where it is.

use std::path::PathBuf;

/// Errors of reading and resolving what is asked for.
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
    /// Without a position: the value is right by itself but not with the others.
    pub fn invalid(path: PathBuf, message: impl Into<String>) -> Self {
        Self::Invalid { path, place: String::new(), message: message.into() }
    }
}
