//! What a calibration measured, from its journal.

use calorimeter_sinks::SinkError;
use calorimeter_sinks::journal::{self, JournalContents};
use std::path::Path;

/// The journal in a folder. A profile counts windows; samples of sensors and single launches stay on disk.
pub fn measured(dir: &Path) -> Result<JournalContents, SinkError> {
    journal::read_trimmed(dir, |record| {
        let windows = std::mem::take(&mut record.time.windows);
        record.take_series();
        record.time.windows = windows;
    })
}
