//! What runs found out, for people: one HTML page that needs a browser and nothing else, and the same in short as Markdown.
//!
//! Everything on the page comes from the records, which lie in it column by column; its scripts draw them.

mod markdown;
mod packed;
mod page;
mod plots;
mod run;
mod summary;

use std::fs;
use std::path::Path;

use crate::{SinkError, atomic};

pub use markdown::markdown;
pub use plots::write_plots;
pub use run::{Mean, ReportedProfile, ReportedRun, SummarizedRun};

/// The name of the page in the folder of its run.
pub const REPORT_FILE: &str = "report.html";

/// Writes the page to a place that the user has named or a folder of a run.
pub fn write_page(runs: &[ReportedRun], profiles: &[ReportedProfile], path: &Path) -> Result<(), SinkError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Links are seen from here, so it must be there before them.
    fs::create_dir_all(folder).map_err(|cause| SinkError::write(path, cause))?;
    let html = page::html(runs, profiles, folder).map_err(|cause| SinkError::format(path, cause))?;
    atomic::write_named(path, html.as_bytes())
}
