//! Errors of comparisons.

use calorimeter_sinks::SinkError;
use std::path::PathBuf;

/// Error that prevents a comparison.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompareError {
    /// A run cannot be read, or a baseline cannot be written.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Neither a path nor the name of a saved baseline.
    #[error("unknown run {name:?}: expected a path or the name of a saved baseline; {known}")]
    Unknown {
        /// Requested run.
        name: String,
        /// Names of the saved baselines.
        known: String,
    },
    /// Other users can write to the file of the baseline.
    #[error("the saved baseline {name:?} is not used: {why}")]
    Untrusted {
        /// Name of the baseline.
        name: String,
        /// Reason.
        why: &'static str,
    },
    /// Invalid name of a baseline.
    #[error("invalid baseline name {0:?}: expected letters, digits, `-`, `_` and `.`, starting with a letter or digit")]
    InvalidName(String),
    /// The system defines no cache directory, or other users may write to it.
    #[error("no folder for baselines: set XDG_CACHE_HOME or HOME to a folder that only you can write to")]
    NoCacheDir,
    /// The default output folder contains no run.
    #[error("no run to compare with {name:?}: pass B, or measure a run in {}", .dir.display())]
    NoRun {
        /// Run on the other side.
        name: String,
        /// Default output folder.
        dir: PathBuf,
    },
    /// The sides have no case in common.
    #[error("{before} and {after} have no case in common: for example, {one:?} and {other:?}")]
    NothingShared {
        /// Names of the runs before.
        before: String,
        /// Names of the runs after.
        after: String,
        /// Id of a case before.
        one: String,
        /// Id of a case after.
        other: String,
    },
    /// The run contains no records.
    #[error("{0} contains no records")]
    Empty(String),
    /// Machine, devices or build differ.
    #[error(
        "these runs are not comparable: {reasons}; override with --force, or compare machines by their profiles of \
         `calorimeter calibrate`"
    )]
    NotComparable {
        /// Facts that differ.
        reasons: String,
    },
}
