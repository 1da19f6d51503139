//! Reports of runs: a self-contained HTML page, and a short form in Markdown.
//!
//! All figures come from the records, which are embedded column by column and drawn by scripts.

mod calibration;
mod derived_columns;
mod forest;
mod group_table;
mod headline;
mod markdown;
mod number_format;
mod packed_columns;
mod page;
mod plots;
mod report_rows;
mod roofs;
mod run;
mod summary;
mod window_histogram;

use std::fs;
use std::path::Path;

use crate::{SinkError, atomic};

pub use markdown::markdown;
pub use plots::write_plots;
pub use run::{MeanSpeedup, ReportedProfile, ReportedRun, SummarizedRun, read_run};
pub use window_histogram::WindowHistogram;

/// File name of the page in the directory of a run.
pub const REPORT_FILE: &str = "report.html";

/// Writes the page to a path that the user named, or into the directory of a run.
pub fn write_page(runs: &[ReportedRun], profiles: &[ReportedProfile], path: &Path) -> Result<(), SinkError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Links are relative to this directory, so it must exist first.
    fs::create_dir_all(folder).map_err(|cause| SinkError::write(path, cause))?;
    atomic::write_named(path, page::html(runs, profiles, path)?.as_bytes())
}
