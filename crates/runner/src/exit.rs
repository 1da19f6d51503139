//! Exit codes.

use calorimeter_sinks::{Record, Status};
use std::process::ExitCode;

/// How a run ends, for scripts. The files are written first whatever the code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Every case that can run here ran.
    Fine = 0,
    /// `compare`: something became slower, or broke.
    Regression = 1,
    /// Usage, configuration or environment.
    Usage = 2,
    /// An output was wrong.
    Mismatch = 3,
    /// `--strict`: an interval stayed wider than asked for.
    NotConverged = 4,
    /// A case failed, crashed or timed out.
    Broken = 5,
    /// Interrupted; what was measured is kept.
    Interrupted = 130,
}

impl Exit {
    /// The worst of what happened.
    pub fn of(records: &[Record], strict: bool) -> Self {
        let any = |wanted: &[Status]| records.iter().any(|record| wanted.contains(&record.outcome.status));
        if any(&[Status::Mismatch]) {
            Self::Mismatch
        } else if any(&[Status::Failed, Status::Crashed, Status::Timeout]) {
            Self::Broken
        } else if strict && records.iter().any(|record| record.time.converged == Some(false)) {
            Self::NotConverged
        } else {
            Self::Fine
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
