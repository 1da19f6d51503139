//! `results.parquet`: the [table] with its types, for polars, pandas, DuckDB and the like. In the feature `tables`.

use std::path::PathBuf;

use polars::prelude::{ParquetWriter, PolarsError};

use crate::record::Record;
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
        let bytes = to_parquet(run, |cause| SinkError::format(&path, cause))?;
        atomic::write(&path, &bytes)?;
        Ok(vec![path])
    }
}

/// How many records are in memory at a time, with their series.
const GROUP: usize = 200;

fn to_parquet(run: &Run, failed: impl Fn(PolarsError) -> SinkError) -> Result<Vec<u8>, SinkError> {
    let mut bytes = Vec::new();
    let empty = table::data_frame(&[]).map_err(&failed)?;
    let mut writer = ParquetWriter::new(&mut bytes).batched(empty.schema()).map_err(&failed)?;
    for group in run.records.chunks(GROUP) {
        let group: Result<Vec<Record>, SinkError> =
            group.iter().map(|record| Ok(run.with_series(record)?.into_owned())).collect();
        let frame = table::data_frame(&group?).map_err(&failed)?;
        writer.write_batch(&frame).map_err(&failed)?;
    }
    writer.finish().map_err(&failed)?;
    Ok(bytes)
}
