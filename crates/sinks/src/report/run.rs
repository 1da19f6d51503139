//! What a report is made of.

use std::path::PathBuf;

use calorimeter_case::record::{Record, SuiteSpeedup};

use crate::ReadBack;

/// A run to report.
#[derive(Clone, Debug)]
pub struct ReportedRun {
    /// As the user named it.
    pub name: String,
    /// Its folder, below which its traces and memory profiles are looked for.
    pub dir: PathBuf,
    /// What is known of it.
    pub read: ReadBack,
    /// The speed-ups of each recipe over all shapes.
    pub means: Vec<Mean>,
}

/// Speed-ups together, and whose they are.
#[derive(Clone, Debug)]
pub struct Mean {
    /// Their mean.
    pub together: SuiteSpeedup,
    /// The places of their records among those of the run.
    pub of: Vec<usize>,
}

/// The records of all runs, one after the other.
pub(super) fn records(runs: &[ReportedRun]) -> impl Iterator<Item = &Record> {
    runs.iter().flat_map(|run| &run.read.records)
}
