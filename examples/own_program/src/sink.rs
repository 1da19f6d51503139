//! `slowest.txt`: id of the slowest case.

use calorimeter_sinks::{Sink, SinkError, SinkInput, atomic};
use std::path::PathBuf;

/// Writes `slowest.txt` in the folder of the run.
pub struct Slowest;

impl Sink for Slowest {
    fn name(&self) -> &'static str {
        "slowest"
    }

    fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
        let timed = run.records.iter().filter_map(|record| Some((record, record.time.time_ns?.median)));
        let Some((slowest, _)) = timed.max_by(|a, b| a.1.total_cmp(&b.1)) else { return Ok(Vec::new()) };
        let path = run.dir.join("slowest.txt");
        atomic::write(&path, slowest.case.id.as_bytes())?;
        Ok(vec![path])
    }
}
