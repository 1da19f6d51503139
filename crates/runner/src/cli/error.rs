//! Errors of commands.

use crate::run::RunError;
use calorimeter_compare::CompareError;

/// Error that ends a command.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Compare(#[from] CompareError),
    #[error(transparent)]
    Sink(#[from] calorimeter_sinks::SinkError),
    #[error(transparent)]
    Merge(#[from] crate::merge::MergeError),
    #[error("cannot write to standard output: {0}")]
    Print(#[from] std::io::Error),
    #[error("{0}")]
    Usage(String),
}
