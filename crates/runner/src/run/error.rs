//! Why a run cannot start or go on.

use crate::clock_lock::LockError;
use crate::devices::DeviceError;
use crate::entries::{ConfigError, MOST_LAUNCHES};
use crate::expression::NoExpression;
use crate::worker::WorkerError;
use calorimeter_sinks::SinkError;
use std::path::PathBuf;

/// Why a run cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A configuration file is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A device is not there.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Results cannot be written or read.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// Workers cannot be had.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// Somebody else uses the device.
    #[error("--require-idle: {device} is in use: {others}")]
    Busy {
        /// The device.
        device: String,
        /// Who.
        others: String,
    },
    /// Nothing tells who uses the device.
    #[error("--require-idle: nobody knows who else uses {device}: {why}")]
    Unwatched {
        /// The device.
        device: String,
        /// What is missing.
        why: String,
    },
    /// The folder to resume leads elsewhere.
    #[error("{} is a link that leads out of the folder of the run, which may come from somebody else: remove it to go on", .link.display())]
    LeadsOut {
        /// The link.
        link: PathBuf,
    },
    /// The journal to resume locks clocks.
    #[error("the run was measured with locked clocks, and a journal locks none by itself: add `--lock-clocks={then}`")]
    Locked {
        /// At what.
        then: String,
    },
    /// A clock cannot be locked.
    #[error(transparent)]
    ClockLock(#[from] LockError),
    /// More processes for each case than anybody has time for.
    #[error("--launches {0} is more than {MOST_LAUNCHES}; ask for fewer")]
    Launches(u32),
    /// The filter is no regular expression.
    #[error("--filter {0}")]
    Filter(NoExpression),
    /// The filter leaves nothing.
    #[error("--filter {pattern:?} matches none of the {cases} cases; see their ids with --dry-run")]
    NothingMatches {
        /// What was given.
        pattern: String,
        /// How many cases there are without it.
        cases: usize,
    },
    /// The journal to resume holds no configuration of ours.
    #[error("the journal in {} does not hold the configuration it was made from: {cause}; give the file again", .dir.display())]
    NoConfig {
        /// The run's directory.
        dir: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
}
