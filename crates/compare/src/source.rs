//! Arguments of a comparison, resolved to runs.

use super::baseline::{self, SavedBaseline};
use super::compared_record::ComparedRecord;
use super::error::CompareError;
use calorimeter_sinks::journal::JOURNAL_FILE;
use calorimeter_sinks::{StoredRun, log_line, read_parts};
use std::path::{Path, PathBuf};

/// Run with the name that the user gave.
#[derive(Debug)]
pub struct ComparedRun {
    /// Name in messages: path or name of a saved baseline.
    pub name: String,
    /// Header and records.
    pub read: StoredRun<ComparedRecord>,
}

/// Newest run in the default output folder.
pub fn latest_run(name: &str) -> Result<String, CompareError> {
    let dir = PathBuf::from("results");
    let runs = std::fs::read_dir(&dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let dated = runs.filter_map(|run| Some((std::fs::metadata(run.join(JOURNAL_FILE)).ok()?.modified().ok()?, run)));
    let latest = dated.max().map(|(_, run)| run.to_string_lossy().into_owned());
    latest.ok_or(CompareError::NoRun { name: name.into(), dir })
}

/// Reads the runs of one side: a path, the name of a saved baseline, or a comma-separated list of these.
pub fn read_runs(word: &str) -> Result<Vec<ComparedRun>, CompareError> {
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
