//! `results.parquet`: the [table] with its types, for polars, pandas, DuckDB and the like. In the feature `tables`.

use std::path::PathBuf;

use polars::prelude::ParquetWriter;

use crate::sink::{Run, Sink};
use crate::{SinkError, atomic, table};

/// Writes `results.parquet` in the folder of the run.
pub struct Parquet;

impl Sink for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn write(&self, run: &Run) -> Result<Vec<PathBuf>, SinkError> {
        let path = run.dir.join("results.parquet");
        let mut bytes = Vec::new();
        table::data_frame(&run.records)
            .and_then(|mut frame| ParquetWriter::new(&mut bytes).finish(&mut frame))
            .map_err(|cause| SinkError::format(&path, cause))?;
        atomic::write(&path, &bytes)?;
        Ok(vec![path])
    }
}
