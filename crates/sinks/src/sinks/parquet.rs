//! `results.parquet`: the typed [table], for polars, pandas, DuckDB and others. In the feature `tables`.

use std::fs::File;
use std::path::PathBuf;

use polars::prelude::{ParquetWriter, PolarsError};

use crate::sink::{Sink, SinkInput};
use crate::{SinkError, atomic, table};

/// Writes `results.parquet` to the directory of the run.
pub struct Parquet;

impl Sink for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
        let path = run.dir.join("results.parquet");
        atomic::write_with(&path, |file| write(run, file, |cause| SinkError::format(&path, cause)))?;
        Ok(vec![path])
    }
}

/// Maximum records per row group, and maximum windows and launches in them.
///
/// Bounds the memory of records. Each group costs the column statistics that the writer holds until the end.
const MAX_GROUP_RECORDS: usize = 2_000;
const MAX_GROUP_VALUES: usize = 200_000;

fn write(run: &SinkInput, file: &mut File, failed: impl Fn(PolarsError) -> SinkError) -> Result<(), SinkError> {
    let empty = table::data_frame(&[]).map_err(&failed)?;
    let mut writer = ParquetWriter::new(file).batched(empty.schema()).map_err(&failed)?;
    let (mut group, mut values) = (Vec::new(), 0);
    for (index, record) in run.records.iter().enumerate() {
        let record = run.with_series(record)?.into_owned();
        values += record.time.windows.len() + record.time.iterations_ns.len();
        group.push(record);
        if group.len() == MAX_GROUP_RECORDS || values > MAX_GROUP_VALUES || index + 1 == run.records.len() {
            let frame = table::data_frame(&group).map_err(&failed)?;
            writer.write_batch(&frame).map_err(&failed)?;
            (group, values) = (Vec::new(), 0);
        }
    }
    writer.finish().map_err(&failed)?;
    Ok(())
}
