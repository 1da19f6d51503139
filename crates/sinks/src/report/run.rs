//! What a report is made of.

use std::path::PathBuf;

use calorimeter_case::record::{Record, SuiteSpeedup};
use serde::Serialize;

use crate::journal::Header;
use crate::{Brief, ReadBack};

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

/// The profile of a calibrated machine, to show beside runs.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedProfile {
    /// As the user named it.
    pub name: String,
    /// What its file holds.
    pub profile: serde_json::Value,
}

/// A run of which no more is reported than its summary.
#[derive(Clone, Debug)]
pub struct SummarizedRun {
    /// As the user named it.
    pub name: String,
    /// Where it comes from; a Parquet file that lies alone does not tell.
    pub header: Option<Header>,
    /// What its summary needs of each case.
    pub cases: Vec<Brief>,
    /// The speed-ups of each recipe over all shapes.
    pub means: Vec<Mean>,
}

impl From<&ReportedRun> for SummarizedRun {
    fn from(ReportedRun { name, read, means, .. }: &ReportedRun) -> Self {
        let cases = read.records.iter().map(Brief::from).collect();
        Self { name: name.clone(), header: read.header.clone(), cases, means: means.clone() }
    }
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
