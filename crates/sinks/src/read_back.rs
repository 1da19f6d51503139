//! A run read back from what is left of it: its folder, its journal, or its Parquet file.

use crate::SinkError;
use crate::journal::{self, Header, JOURNAL_FILE, JournalContents, Resumed};
use crate::record_part::RecordPart;
use calorimeter_case::record::Record;
use std::path::Path;

/// What is known of a run afterwards, or as much of each record as its reader asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadBack<R = Record> {
    /// Where it comes from; a Parquet file that lies alone does not tell.
    pub header: Option<Header>,
    /// When it was taken up again, and where.
    pub resumed: Vec<Resumed>,
    /// Its records without their series, one for each case; of what sensors said the middle.
    pub records: Vec<R>,
}

impl<R> From<JournalContents<R>> for ReadBack<R> {
    fn from(contents: JournalContents<R>) -> Self {
        Self { header: Some(contents.header), resumed: contents.resumed, records: contents.records }
    }
}

/// Reads the folder of a run, a journal, or a Parquet file. What a Parquet file cannot hold, its neighbor, the journal of
/// its run, is asked for.
pub fn read_back(path: &Path) -> Result<ReadBack, SinkError> {
    let journal = |path: &Path| journal::read_trimmed(path, condensed).map(ReadBack::from);
    if !is_parquet(path) {
        return journal(path);
    }
    let records = records_of_parquet(path)?;
    let neighbor = path.with_file_name(JOURNAL_FILE);
    if !neighbor.exists() {
        return Ok(ReadBack { header: None, resumed: Vec::new(), records });
    }
    Ok(ReadBack { records, ..journal(&neighbor)? })
}

/// The same with no more of each record than its reader needs: of a long run in a small part of the time and the memory.
pub fn read_parts<P: RecordPart>(path: &Path) -> Result<ReadBack<P>, SinkError> {
    if !is_parquet(path) {
        return Ok(journal::read_parts(path)?.into());
    }
    let ReadBack { header, resumed, records } = read_back(path)?;
    Ok(ReadBack { header, resumed, records: records.iter().map(P::from).collect() })
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet") && !path.is_dir()
}

/// Without series, but for the middle of what sensors said.
fn condensed(record: &mut Record) {
    if let Some(telemetry) = &mut record.telemetry {
        telemetry.condense();
    }
    let samples = record.telemetry.as_mut().map(|telemetry| std::mem::take(&mut telemetry.samples));
    record.take_series();
    if let (Some(telemetry), Some(samples)) = (&mut record.telemetry, samples) {
        telemetry.samples = samples;
    }
}

#[cfg(feature = "tables")]
fn records_of_parquet(path: &Path) -> Result<Vec<Record>, SinkError> {
    crate::table::read_records(path)
}

#[cfg(not(feature = "tables"))]
fn records_of_parquet(path: &Path) -> Result<Vec<Record>, SinkError> {
    Err(SinkError::NeedsTables { path: path.to_owned() })
}
