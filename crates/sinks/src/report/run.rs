//! Input of reports.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use calorimeter_case::CaseId;
use calorimeter_case::record::{Record, SuiteSpeedup};
use serde::Serialize;

use super::window_histogram::WindowHistogram;
use crate::journal::Header;
use crate::read_back::read_with_series;
use crate::{CaseExcerpt, SinkError, StoredRun};

/// Run to report.
#[derive(Clone, Debug)]
pub struct ReportedRun {
    /// Name as given by the user.
    pub name: String,
    /// Directory of the run with its traces and memory profiles.
    pub dir: PathBuf,
    /// Header and records.
    pub read: StoredRun,
    /// Histogram of the window times of each case.
    pub windows: HashMap<CaseId, WindowHistogram>,
    /// Mean speed-up of each recipe over all shapes.
    pub means: Vec<MeanSpeedup>,
}

/// Reads a run from its directory, its journal or its Parquet file, with the histograms that its journal contains.
pub fn read_run(path: &Path) -> Result<(StoredRun, HashMap<CaseId, WindowHistogram>), SinkError> {
    let (run, windows) = read_with_series(path, WindowHistogram::new)?;
    let windows = windows.into_iter().filter_map(|(id, histogram)| Some((id, histogram?))).collect();
    Ok((run, windows))
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
