//! Runs that are kept under a name, to be compared with later ones.

use super::error::CompareError;
use crate::cache;
use calorimeter_sinks::journal;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The name of a run that is kept. It is the name of a file, too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Baseline(String);

const ENDING: &str = "jsonl";

impl FromStr for Baseline {
    type Err = CompareError;

    fn from_str(name: &str) -> Result<Self, CompareError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins && name.chars().all(fits) { Ok(Self(name.into())) } else { Err(CompareError::NoName(name.into())) }
    }
}

impl Baseline {
    /// Where it is kept, or would be.
    pub fn path(&self) -> Result<PathBuf, CompareError> {
        let folder = cache::folder("baselines").ok_or(CompareError::NoPlace)?;
        Ok(folder.join(format!("{}.{ENDING}", self.0)))
    }

    /// Where it is kept; nothing where it is not.
    pub fn kept(&self) -> Result<Option<PathBuf>, CompareError> {
        let path = self.path()?;
        match cache::open_to_others(&path) {
            Some(why) => Err(CompareError::NotTrusted { name: self.0.clone(), why }),
            None => Ok(path.exists().then_some(path)),
        }
    }
}

/// Keeps the journal of a run, without its series, in place of what had the name before.
pub fn keep(name: &Baseline, dir: &Path) -> Result<PathBuf, CompareError> {
    let contents = journal::read_trimmed(dir, |record| drop(record.take_series()))?;
    let path = name.path()?;
    journal::write_copy(&contents, &path)?;
    Ok(path)
}

/// What is kept, in words.
pub fn known() -> String {
    let files = cache::folder("baselines").and_then(|folder| std::fs::read_dir(folder).ok());
    let names = files.into_iter().flatten().flatten().map(|file| file.path());
    let names = names.filter(|path| path.extension().is_some_and(|ending| ending == ENDING));
    let mut names: Vec<String> =
        names.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort_unstable();
    match names.as_slice() {
        [] => "none is kept: `calorimeter run --save-baseline NAME` keeps one".into(),
        names => format!("kept are {}", names.join(", ")),
    }
}
