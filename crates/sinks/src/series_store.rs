//! Records read from their journal on demand, so that a long run holds no time series in memory.

use crate::SinkError;
use crate::journal::format::decode_record;
use calorimeter_case::CaseId;
use calorimeter_case::record::{Record, RecordSeries};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Positions of records in a journal; empty by default.
#[derive(Clone, Debug, Default)]
pub struct SeriesStore(Option<Arc<StoredLines>>);

#[derive(Debug)]
struct StoredLines {
    path: PathBuf,
    file: File,
    spans: HashMap<CaseId, LineSpan>,
}

/// Position of a line in a journal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineSpan {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

impl SeriesStore {
    pub(crate) fn new(path: PathBuf, file: File, spans: HashMap<CaseId, LineSpan>) -> Self {
        Self(Some(Arc::new(StoredLines { path, file, spans })))
    }

    /// Reads the time series of a case; `None` if they are not stored.
    pub(crate) fn series(&self, case: &CaseId) -> Result<Option<RecordSeries>, SinkError> {
        let Some((lines, line)) = self.0.as_ref().and_then(|lines| Some((lines, lines.spans.get(case)?))) else {
            return Ok(None);
        };
        let mut bytes = vec![0; line.bytes as usize];
        let read = lines.file.read_exact_at(&mut bytes, line.start);
        read.map_err(|cause| SinkError::Read { path: lines.path.clone(), cause })?;
        let mut record: Record = decode_record(&bytes, &lines.path)?;
        Ok(Some(record.take_series()))
    }
}
