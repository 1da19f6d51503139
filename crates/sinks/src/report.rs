//! What runs found out, for people: one HTML page that needs a browser and nothing else, and the same in short as Markdown.
//!
//! Everything on the page comes from the records, which lie in it column by column; its scripts draw them.

mod links;
mod markdown;
mod packed;
mod page;
mod summary;

use std::path::{Path, PathBuf};

use calorimeter_case::record::{Record, SuiteSpeedup};

use crate::{ReadBack, SinkError, atomic};

pub use markdown::markdown;

/// The name of the page in the folder of its run.
pub const REPORT_FILE: &str = "report.html";

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

/// Writes the page to a place that the user has named or a folder of a run.
pub fn write_page(runs: &[ReportedRun], path: &Path) -> Result<(), SinkError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let html = page::html(runs, folder).map_err(|cause| SinkError::format(path, cause))?;
    atomic::write_named(path, html.as_bytes())
}

/// The records of all runs, one after the other.
fn records(runs: &[ReportedRun]) -> impl Iterator<Item = &Record> {
    runs.iter().flat_map(|run| &run.read.records)
}
