//! A run read back from what is left of it: its folder, its journal, or its Parquet file.

use crate::SinkError;
use crate::journal::{self, Header, JOURNAL_FILE, JournalContents, Resumed};
use calorimeter_case::record::Record;
use std::path::Path;

/// What is known of a run afterwards.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadBack {
    /// Where it comes from; a Parquet file that lies alone does not tell.
    pub header: Option<Header>,
    /// When it was taken up again, and where.
    pub resumed: Vec<Resumed>,
    /// Its records without their series, one for each case.
    pub records: Vec<Record>,
}

impl From<JournalContents> for ReadBack {
    fn from(contents: JournalContents) -> Self {
        Self { header: Some(contents.header), resumed: contents.resumed, records: contents.records }
    }
}

/// Reads the folder of a run, a journal, or a Parquet file. What a Parquet file cannot hold, its neighbour, the journal of
/// its run, is asked for.
pub fn read_back(path: &Path) -> Result<ReadBack, SinkError> {
    let journal = |path: &Path| journal::read_trimmed(path, |record| drop(record.take_series())).map(ReadBack::from);
    if path.extension().is_none_or(|extension| extension != "parquet") || path.is_dir() {
        return journal(path);
    }
    let records = records_of_parquet(path)?;
    let neighbour = path.with_file_name(JOURNAL_FILE);
    if !neighbour.exists() {
        return Ok(ReadBack { header: None, resumed: Vec::new(), records });
    }
    Ok(ReadBack { records, ..journal(&neighbour)? })
}

#[cfg(feature = "tables")]
fn records_of_parquet(path: &Path) -> Result<Vec<Record>, SinkError> {
    crate::table::read_records(path)
}

#[cfg(not(feature = "tables"))]
fn records_of_parquet(path: &Path) -> Result<Vec<Record>, SinkError> {
    Err(SinkError::NeedsTables { path: path.to_owned() })
}
