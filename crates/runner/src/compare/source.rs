//! Arguments of a comparison, resolved to runs or profiles.

use super::baseline::{self, SavedBaseline};
use super::compared_record::ComparedRecord;
use super::error::CompareError;
use crate::calibration::{CalibrationProfile, is_profile};
use crate::log_line::log_line;
use calorimeter_sinks::journal::JOURNAL_FILE;
use calorimeter_sinks::{StoredRun, read_parts};
use std::path::{Path, PathBuf};

/// Run with the name that the user gave.
#[derive(Debug)]
pub struct ComparedRun {
    pub name: String,
    pub read: StoredRun<ComparedRecord>,
}

/// Both sides of a comparison.
pub enum Sources {
    /// Runs before and after; several runs per side are repetitions.
    Runs(Vec<ComparedRun>, Vec<ComparedRun>),
    Profiles(Box<[CalibrationProfile; 2]>),
}

/// Resolves both arguments. Each is a path, the name of a saved baseline, or a comma-separated list of these.
pub fn sources(before: &str, after: &str) -> Result<Sources, CompareError> {
    let [first, second] = [before, after].map(profile_path);
    match (first, second) {
        (Some(one), Some(other)) => {
            let read = |path: &Path| CalibrationProfile::read(path).map_err(CompareError::Profile);
            Ok(Sources::Profiles(Box::new([read(&one)?, read(&other)?])))
        }
        (None, None) => Ok(Sources::Runs(read_runs(before)?, read_runs(after)?)),
        (Some(_), None) => Err(CompareError::Mixed { run: after.into(), profile: before.into() }),
        (None, Some(_)) => Err(CompareError::Mixed { run: before.into(), profile: after.into() }),
    }
}

/// Newest run in the default output folder.
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

fn read_runs(word: &str) -> Result<Vec<ComparedRun>, CompareError> {
    // Paths may contain commas.
    let words = if Path::new(word).exists() { vec![word] } else { word.split(',').collect() };
    words.into_iter().map(read_run).collect()
}

fn read_run(word: &str) -> Result<ComparedRun, CompareError> {
    let read = read_parts(&resolve_path(word)?)?;
    if read.records.is_empty() {
        return Err(CompareError::Empty(word.into()));
    }
    Ok(ComparedRun { name: word.into(), read })
}

/// Resolves a path or baseline name; paths take precedence.
fn resolve_path(word: &str) -> Result<PathBuf, CompareError> {
    let path = PathBuf::from(word);
    let kept = word.parse::<SavedBaseline>().ok().map(|name| name.existing_path()).transpose();
    if path.exists() {
        if matches!(kept, Ok(Some(Some(_)))) {
            log_line!("note: {word} is both a path and the name of a saved baseline; using the path");
        }
        return Ok(path);
    }
    kept?.flatten().ok_or_else(|| CompareError::Unknown { name: word.into(), known: baseline::saved_names() })
}
