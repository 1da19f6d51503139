//! Exit codes.

use calorimeter_sinks::{Record, Status};
use std::process::ExitCode;

/// Exit status of a run. Result files are written before the program exits with any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Every supported case succeeded.
    Success = 0,
    /// `compare`: a case became slower or failed.
    Regression = 1,
    /// Invalid usage, configuration or environment.
    Usage = 2,
    /// An output did not match its reference.
    Mismatch = 3,
    /// `--strict`: an interval stayed wider than the requested precision.
    NotConverged = 4,
    /// A case failed, crashed or timed out.
    CaseFailed = 5,
    /// Interrupted; finished cases are in the journal.
    Interrupted = 130,
}

impl Exit {
    /// Returns the most severe status of all records.
    pub fn from_records(records: &[Record], strict: bool) -> Self {
        let any = |wanted: &[Status]| records.iter().any(|record| wanted.contains(&record.outcome.status));
        if any(&[Status::Mismatch]) {
            Self::Mismatch
        } else if any(&[Status::Failed, Status::Crashed, Status::Timeout]) {
            Self::CaseFailed
        } else if strict && records.iter().any(|record| record.time.converged == Some(false)) {
            Self::NotConverged
        } else {
            Self::Success
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
