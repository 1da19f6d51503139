//! `results.csv`: the [table] for spreadsheets and scripts. An empty cell was not measured.

use std::path::PathBuf;

use polars::prelude::{CsvWriter, SerWriter};

use crate::sink::{Run, Sink};
use crate::{SinkError, atomic, table};

/// Writes `results.csv` in the folder of the run.
pub struct Csv;

impl Sink for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn write(&self, run: &Run) -> Result<Vec<PathBuf>, SinkError> {
        let path = run.dir.join("results.csv");
        let mut bytes = Vec::new();
        table::data_frame(&run.records)
            .and_then(|mut frame| CsvWriter::new(&mut bytes).finish(&mut frame))
            .map_err(|cause| SinkError::format(&path, cause))?;
        atomic::write(&path, &bytes)?;
        Ok(vec![path])
    }
}
