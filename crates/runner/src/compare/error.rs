//! Errors of comparisons.

use calorimeter_sinks::SinkError;
use std::path::PathBuf;

/// Error that prevents a comparison.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Neither a path nor the name of a saved baseline.
    #[error("unknown run {name:?}: expected a path or the name of a saved baseline; {known}")]
    Unknown { name: String, known: String },
    #[error("the saved baseline {name:?} is not used: {why}")]
    Untrusted { name: String, why: &'static str },
    #[error("invalid baseline name {0:?}: expected letters, digits, `-`, `_` and `.`, starting with a letter or digit")]
    InvalidName(String),
    #[error("no folder for baselines: set XDG_CACHE_HOME or HOME to a folder that only you can write to")]
    NoCacheDir,
    #[error("{0}")]
    Profile(String),
    #[error("cannot compare the run {run} with the calibration profile {profile}: pass two runs or two profiles")]
    Mixed { run: String, profile: String },
    #[error("no run to compare with {name:?}: pass B, or measure a run in {}", .dir.display())]
    NoRun { name: String, dir: PathBuf },
    #[error("{before} and {after} have no case in common: for example, {one:?} and {other:?}")]
    NothingShared { before: String, after: String, one: String, other: String },
    #[error("{0} contains no records")]
    Empty(String),
    #[error(
        "these runs are not comparable: {reasons}; override with --force, or compare machines by their profiles of \
         `calorimeter calibrate`"
    )]
    NotComparable { reasons: String },
}
