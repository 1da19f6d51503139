//! What is to be compared, from the words of the command line.

use super::baseline::{self, Baseline};
use super::error::CompareError;
use super::measured::Measured;
use crate::calibration::{Profile, is_profile};
use crate::tell::tell;
use calorimeter_sinks::journal::JOURNAL_FILE;
use calorimeter_sinks::{ReadBack, read_parts};
use std::path::{Path, PathBuf};

/// A run, by the name that it was given.
#[derive(Debug)]
pub struct Run {
    pub name: String,
    pub read: ReadBack<Measured>,
}

/// Both sides, of one kind.
pub enum Sources {
    /// Runs before and after; several on a side are repetitions.
    Runs(Vec<Run>, Vec<Run>),
    Profiles(Box<[Profile; 2]>),
}

/// What two words of the command line name: each a path or a baseline, or several runs with commas between them.
pub fn sources(before: &str, after: &str) -> Result<Sources, CompareError> {
    let [first, second] = [before, after].map(profile_path);
    match (first, second) {
        (Some(one), Some(other)) => {
            let read = |path: &Path| Profile::read(path).map_err(CompareError::Profile);
            Ok(Sources::Profiles(Box::new([read(&one)?, read(&other)?])))
        }
        (None, None) => Ok(Sources::Runs(runs(before)?, runs(after)?)),
        (Some(_), None) => Err(CompareError::Mixed { run: after.into(), profile: before.into() }),
        (None, Some(_)) => Err(CompareError::Mixed { run: before.into(), profile: after.into() }),
    }
}

/// The newest run where runs go that nobody gives a folder.
pub fn latest_run(name: &str) -> Result<String, CompareError> {
    let dir = PathBuf::from("results");
    let runs = std::fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let dated = runs.filter_map(|run| Some((std::fs::metadata(run.join(JOURNAL_FILE)).ok()?.modified().ok()?, run)));
    let latest = dated.max().map(|(_, run)| run.to_string_lossy().into_owned());
    latest.ok_or(CompareError::NoRun { name: name.into(), dir })
}

fn profile_path(word: &str) -> Option<PathBuf> {
    let path = Path::new(word);
    is_profile(path).then(|| path.to_owned())
}

fn runs(word: &str) -> Result<Vec<Run>, CompareError> {
    // A path may hold a comma.
    let words = if Path::new(word).exists() { vec![word] } else { word.split(',').collect() };
    words.into_iter().map(run).collect()
}

fn run(word: &str) -> Result<Run, CompareError> {
    let read = read_parts(&path(word)?)?;
    if read.records.is_empty() {
        return Err(CompareError::Empty(word.into()));
    }
    Ok(Run { name: word.into(), read })
}

/// A path that is there comes before a baseline of its name.
fn path(word: &str) -> Result<PathBuf, CompareError> {
    let path = PathBuf::from(word);
    let kept = word.parse::<Baseline>().ok().map(|name| name.kept()).transpose();
    if path.exists() {
        if matches!(kept, Ok(Some(Some(_)))) {
            tell!("note: {word} is a path here and the name of a baseline, too: the path is taken");
        }
        return Ok(path);
    }
    kept?.flatten().ok_or_else(|| CompareError::Unknown { name: word.into(), known: baseline::known() })
}
