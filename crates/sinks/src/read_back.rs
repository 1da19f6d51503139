//! Reads a run from its directory, its journal, or its Parquet file.

use crate::SinkError;
use crate::journal::{self, Header, JOURNAL_FILE, JournalContents, Resumed};
use crate::record_part::RecordPart;
use calorimeter_case::CaseId;
use calorimeter_case::record::Record;
use std::collections::HashMap;
use std::path::Path;

/// Stored run, read by [`read_back`] or [`read_parts`]; `R` is the part of each record that the reader requested.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredRun<R = Record> {
    /// Provenance; `None` for a Parquet file without a journal next to it.
    pub header: Option<Header>,
    /// Resumptions of the run.
    pub resumed: Vec<Resumed>,
    /// Record of each case, without time series; telemetry is reduced to its median.
    pub records: Vec<R>,
}

impl<R> From<JournalContents<R>> for StoredRun<R> {
    fn from(contents: JournalContents<R>) -> Self {
        Self { header: Some(contents.header), resumed: contents.resumed, records: contents.records }
    }
}

/// Reads the records of a run from its directory, its journal, or its Parquet file. The header missing in a Parquet
/// file is read from the journal next to it. [`journal::read`] also returns time series, summary and warnings.
pub fn read_back(path: &Path) -> Result<StoredRun, SinkError> {
    read_with_series(path, |_| ()).map(|(run, _)| run)
}

/// Reads the records of a run, and a summary of the time series of each record in the journal.
pub(crate) fn read_with_series<S: Send>(
    path: &Path,
    summarize: impl Fn(&Record) -> S + Sync,
) -> Result<(StoredRun, HashMap<CaseId, S>), SinkError> {
    let convert = |mut record: Record| {
        let summary = summarize(&record);
        condense(&mut record);
        (record, summary)
    };
    let journal = |path: &Path| {
        let JournalContents { header, resumed, records, .. } = journal::read_mapped(path, convert)?;
        let (records, summaries): (Vec<Record>, Vec<S>) = records.into_iter().unzip();
        let summaries = records.iter().map(|record| record.case.id.clone()).zip(summaries).collect();
        Ok((StoredRun { header: Some(header), resumed, records }, summaries))
    };
    if !is_parquet(path) {
        return journal(path);
    }
    let records = records_of_parquet(path)?;
    let neighbor = path.with_file_name(JOURNAL_FILE);
    if !neighbor.exists() {
        return Ok((StoredRun { header: None, resumed: Vec::new(), records }, HashMap::new()));
    }
    let (run, summaries) = journal(&neighbor)?;
    Ok((StoredRun { records, ..run }, summaries))
}

/// Reads a part of each record, which takes a fraction of the time and memory for long runs.
pub fn read_parts<P: RecordPart>(path: &Path) -> Result<StoredRun<P>, SinkError> {
    if !is_parquet(path) {
        return Ok(journal::read_parts(path)?.into());
    }
    let StoredRun { header, resumed, records } = read_back(path)?;
    Ok(StoredRun { header, resumed, records: records.iter().map(P::from).collect() })
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet") && !path.is_dir()
}

/// Removes time series; telemetry is reduced to its median.
fn condense(record: &mut Record) {
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
