//! Saved baselines: runs stored under a name for later comparisons.

use super::error::CompareError;
use calorimeter_sinks::{cache, journal};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Name of a saved baseline; also its file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedBaseline(String);

const EXTENSION: &str = "jsonl";

impl FromStr for SavedBaseline {
    type Err = CompareError;

    fn from_str(name: &str) -> Result<Self, CompareError> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        let is_valid = starts_well && name.chars().all(is_allowed);
        if is_valid { Ok(Self(name.into())) } else { Err(CompareError::InvalidName(name.into())) }
    }
}

impl SavedBaseline {
    /// Path of the saved run, which need not exist.
    pub fn path(&self) -> Result<PathBuf, CompareError> {
        let folder = cache::cache_dir("baselines").ok_or(CompareError::NoCacheDir)?;
        Ok(folder.join(format!("{}.{EXTENSION}", self.0)))
    }

    /// Path of the saved run, or `None` if there is none. Fails if other users can write to it.
    pub fn existing_path(&self) -> Result<Option<PathBuf>, CompareError> {
        let path = self.path()?;
        match cache::untrusted_reason(&path) {
            Some(why) => Err(CompareError::Untrusted { name: self.0.clone(), why }),
            None => Ok(path.exists().then_some(path)),
        }
    }
}

/// Saves the journal of a run without its sample series, replacing an earlier run of this name.
pub fn save(name: &SavedBaseline, dir: &Path) -> Result<PathBuf, CompareError> {
    let contents = journal::read_trimmed(dir, |record| drop(record.take_series()))?;
    let path = name.path()?;
    journal::write_copy(&contents, &path)?;
    Ok(path)
}

/// Lists the saved baselines, for error messages.
pub(crate) fn saved_names() -> String {
    let files = cache::cache_dir("baselines").and_then(|folder| std::fs::read_dir(folder).ok());
    let names = files.into_iter().flatten().flatten().map(|file| file.path());
    let names = names.filter(|path| path.extension().is_some_and(|ending| ending == EXTENSION));
    let mut names: Vec<String> =
        names.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort_unstable();
    match names.as_slice() {
        [] => "no baseline is saved; save one with `calorimeter run --save-baseline NAME`".into(),
        names => format!("saved baselines: {}", names.join(", ")),
    }
}
