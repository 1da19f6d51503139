//! A run read back from what is left of it: its folder, its journal, or its Parquet file.

use crate::SinkError;
use crate::journal::{self, Header, JOURNAL_FILE};
use calorimeter_case::record::Record;
use std::path::Path;

/// What is known of a run afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadBack {
    /// Where it comes from; a Parquet file that lies alone does not tell.
    pub header: Option<Header>,
    /// Its records without their series, one for each case.
    pub records: Vec<Record>,
}

/// Reads the folder of a run, a journal, or a Parquet file. What a Parquet file cannot hold, its neighbour, the journal of
/// its run, is asked for.
pub fn read_back(path: &Path) -> Result<ReadBack, SinkError> {
    if path.extension().is_none_or(|extension| extension != "parquet") || path.is_dir() {
        let contents = journal::read_trimmed(path, |record| drop(record.take_series()))?;
        return Ok(ReadBack { header: Some(contents.header), records: contents.records });
    }
    let journal = path.with_file_name(JOURNAL_FILE);
    let header = if journal.exists() { Some(journal::read_header(&journal)?) } else { None };
    Ok(ReadBack { header, records: records_of_parquet(path)? })
}

#[cfg(feature = "tables")]
fn records_of_parquet(path: &Path) -> Result<Vec<Record>, SinkError> {
    crate::table::read_records(path)
}

#[cfg(not(feature = "tables"))]
fn records_of_parquet(path: &Path) -> Result<Vec<Record>, SinkError> {
    Err(SinkError::NeedsTables { path: path.to_owned() })
}
