//! Errors of a run.

use crate::entries::{ConfigError, MAX_LAUNCHES, SelectionError};
use crate::expression::InvalidRegex;
use crate::worker::WorkerError;
use calorimeter_case::UnknownName;
use calorimeter_external::ExternalError;
use calorimeter_probe::clock_lock::LockError;
use calorimeter_sinks::SinkError;
use std::path::PathBuf;

/// Error that prevents a run from starting or continuing.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A configuration file is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A device is missing, or several are selected.
    #[error(transparent)]
    Device(#[from] SelectionError),
    /// Results cannot be written or read.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Workers cannot be started.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Other processes use the device.
    #[error("--require-idle: {device} is in use: {others}")]
    Busy {
        /// Device.
        device: String,
        /// Other users.
        others: String,
    },
    /// The users of the device cannot be determined.
    #[error("--require-idle: cannot determine other users of {device}: {why}")]
    UsersUnknown {
        /// Device.
        device: String,
        /// Reason.
        why: String,
    },
    /// The folder to resume contains a link that leads out of it.
    #[error("{} is a link out of the folder of the run; remove it to resume", .link.display())]
    EscapingLink {
        /// Path of the link.
        link: PathBuf,
    },
    /// The run to resume had locked clocks.
    #[error("the run to resume was measured with locked clocks: add `--lock-clocks={then}`")]
    MissingLockClocks {
        /// Clock of the earlier part.
        then: String,
    },
    /// A clock cannot be locked.
    #[error(transparent)]
    ClockLock(#[from] LockError),
    /// A Python source cannot be used.
    #[error("--python {source_name}: {error}")]
    Python {
        /// File or library.
        source_name: String,
        /// Cause.
        error: ExternalError,
    },
    /// No implementation has this name.
    #[error("--implementations: {0}")]
    UnknownImplementation(UnknownName),
    /// More processes per case than allowed.
    #[error("{}", launches_error(.0))]
    TooManyLaunches(u32),
    /// The filter is not a valid regular expression.
    #[error("--filter: {0}")]
    InvalidFilter(InvalidRegex),
    /// The filter matches no case.
    #[error("--filter {pattern:?} matches none of the {cases} cases; see their ids with --dry-run")]
    NoMatch {
        /// Filter.
        pattern: String,
        /// Number of cases without the filter.
        cases: usize,
    },
    /// The journal to resume has no readable configuration.
    #[error("cannot read the configuration in the journal of {}: {cause}; pass the file again", .dir.display())]
    MissingConfig {
        /// Folder of the run.
        dir: PathBuf,
        /// Reason.
        cause: String,
    },
}

fn launches_error(launches: &u32) -> String {
    format!("invalid --launches {launches}: expected at most {MAX_LAUNCHES}")
}
