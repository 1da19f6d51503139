//! Why nothing could be compared.

use calorimeter_sinks::SinkError;
use std::path::PathBuf;

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// There is no such file, and nothing was kept under this name.
    #[error("{name:?} is no file or folder, and no baseline is kept under this name; {known}")]
    Unknown { name: String, known: String },
    #[error("what is kept as {name:?} is not used, because {why}")]
    NotTrusted { name: String, why: &'static str },
    #[error(
        "{0:?} is no name for a baseline: letters, digits, `-`, `_` and `.` make one, and it begins with none of these three"
    )]
    NoName(String),
    #[error(
        "there is no place for baselines: neither XDG_CACHE_HOME nor HOME names a folder that only you may write to"
    )]
    NoPlace,
    #[error("{0}")]
    Profile(String),
    #[error("{run} is a run and {profile} a calibration profile: compare two of one kind")]
    Mixed { run: String, profile: String },
    #[error("no run is given to compare with {name:?}, and there is none in {}", .dir.display())]
    NoRun { name: String, dir: PathBuf },
    #[error("no case is in both {before} and {after}: ids begin, for example, with {one:?} here and {other:?} there")]
    NothingShared { before: String, after: String, one: String, other: String },
    #[error("{0} holds no records")]
    Empty(String),
    #[error(
        "these times cannot be compared: {reasons}; --force compares them all the same and says so, and two profiles of \
         `calorimeter calibrate` tell which machine is the faster"
    )]
    Unlike { reasons: String },
}
