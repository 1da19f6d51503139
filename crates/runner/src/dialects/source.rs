//! A configuration file with its text.

use super::yaml::MOST_BYTES;
use crate::entries::ConfigError;
use calorimeter_case::read_text;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// A configuration file with its text, so that a run can be resumed without it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Where it was read from.
    #[serde(with = "crate::written_path")]
    pub path: PathBuf,
    /// What it said.
    pub text: String,
}

impl Source {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        match read_text(path, MOST_BYTES) {
            Ok(text) => Ok(Self { path: path.to_owned(), text }),
            Err(cause) => Err(ConfigError::Read { path: path.to_owned(), cause }),
        }
    }
}
