//! Reads the journal of a calibration.

use calorimeter_sinks::SinkError;
use calorimeter_sinks::journal::{self, JournalContents};
use std::path::Path;

/// Reads the journal in a folder. Keeps windows, which profiles count, and drops sensor samples and single launches.
pub fn read_journal(dir: &Path) -> Result<JournalContents, SinkError> {
    journal::read_trimmed(dir, |record| {
        let windows = std::mem::take(&mut record.time.windows);
        record.take_series();
        record.time.windows = windows;
    })
}
