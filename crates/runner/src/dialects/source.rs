//! Configuration file with its text.

use super::yaml::MAX_FILE_BYTES;
use crate::entries::ConfigError;
use calorimeter_case::read_text;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Configuration file with its text, so that a run can be resumed without the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfigSource {
    /// Path of the file.
    #[serde(with = "crate::path_serde")]
    pub path: PathBuf,
    /// Content of the file.
    pub text: String,
}

impl ConfigSource {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        match read_text(path, MAX_FILE_BYTES) {
            Ok(text) => Ok(Self { path: path.to_owned(), text }),
            Err(cause) => Err(ConfigError::Read { path: path.to_owned(), cause }),
        }
    }
}
