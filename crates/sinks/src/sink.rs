//! What derives files from the records of a run.

use std::borrow::Cow;
use std::path::PathBuf;

use crate::journal::Header;
use crate::{SinkError, Stored};
use calorimeter_case::record::Record;

/// A run as the derived files see it: nothing that could not be read back from its journal.
#[derive(Clone, Debug)]
pub struct Run {
    /// The folder of the run, where its journal lies.
    pub dir: PathBuf,
    /// The folder that the configuration names for results; the torchao-compatible files go below it.
    pub output_dir: PathBuf,
    /// The first line of the journal.
    pub header: Header,
    /// The records in the order of the plan. Those whose series lie on disk are without them here.
    pub records: Vec<Record>,
    /// Where series lie on disk, if any do.
    pub stored: Stored,
}

impl Run {
    /// The records with their series, one after the other.
    pub fn whole(&self) -> impl Iterator<Item = Result<Cow<'_, Record>, SinkError>> {
        self.records.iter().map(|record| self.with_series(record))
    }

    /// One of the records with its series.
    pub fn with_series<'a>(&self, record: &'a Record) -> Result<Cow<'a, Record>, SinkError> {
        Ok(match self.stored.series(&record.case.id)? {
            Some(series) => {
                let mut record = record.clone();
                record.put_series(series);
                Cow::Owned(record)
            }
            None => Cow::Borrowed(record),
        })
    }
}

/// Derives files from a run.
pub trait Sink: Sync {
    /// What it is called on the command line.
    fn name(&self) -> &'static str;

    /// Writes the files, each atomically, and says where they are. Without anything to say it writes none.
    fn write(&self, run: &Run) -> Result<Vec<PathBuf>, SinkError>;
}
