//! Input of reports.

use std::path::PathBuf;

use calorimeter_case::record::{Record, SuiteSpeedup};
use serde::Serialize;

use crate::journal::Header;
use crate::{CaseExcerpt, StoredRun};

/// Run to report.
#[derive(Clone, Debug)]
pub struct ReportedRun {
    /// Name as given by the user.
    pub name: String,
    /// Directory of the run with its traces and memory profiles.
    pub dir: PathBuf,
    /// Header and records.
    pub read: StoredRun,
    /// Mean speed-up of each recipe over all shapes.
    pub means: Vec<MeanSpeedup>,
}

/// Profile of a calibrated machine.
#[derive(Clone, Debug, Serialize)]
pub struct ReportedProfile {
    /// Name as given by the user.
    pub name: String,
    /// Content of the profile file.
    pub profile: serde_json::Value,
}

/// Run of which only the summary is reported.
#[derive(Clone, Debug)]
pub struct SummarizedRun {
    /// Name as given by the user.
    pub name: String,
    /// Provenance; `None` for a Parquet file without a journal.
    pub header: Option<Header>,
    /// Excerpts of the records.
    pub cases: Vec<CaseExcerpt>,
    /// Mean speed-up of each recipe over all shapes.
    pub means: Vec<MeanSpeedup>,
}

impl From<&ReportedRun> for SummarizedRun {
    fn from(ReportedRun { name, read, means, .. }: &ReportedRun) -> Self {
        let cases = read.records.iter().map(CaseExcerpt::from).collect();
        Self { name: name.clone(), header: read.header.clone(), cases, means: means.clone() }
    }
}

/// Mean of several speed-ups, and their records.
#[derive(Clone, Debug)]
pub struct MeanSpeedup {
    /// Mean.
    pub speedup: SuiteSpeedup,
    /// Indices of the records in the run.
    pub record_indices: Vec<usize>,
}

/// Records of all runs, in order.
pub(super) fn records(runs: &[ReportedRun]) -> impl Iterator<Item = &Record> {
    runs.iter().flat_map(|run| &run.read.records)
}
