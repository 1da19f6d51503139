//! Trait of sinks, which derive files from the records of a run.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::journal::{Header, JournalContents, read_stored};
use crate::{SeriesStore, SinkError};
use calorimeter_case::Device;
use calorimeter_case::record::Record;

/// Input of sinks. Everything in it can be read back from the journal.
#[derive(Clone, Debug)]
pub struct SinkInput {
    /// Directory of the run, with its journal.
    pub dir: PathBuf,
    /// Results directory of the configuration, for the torchao-compatible files.
    pub output_dir: PathBuf,
    /// First line of the journal.
    pub header: Header,
    /// Records in plan order; without time series if those are stored on disk.
    pub records: Vec<Record>,
    /// Access to time series on disk.
    pub stored: SeriesStore,
}

impl SinkInput {
    /// Reads the journal in `dir`. All derived files are written to `dir`, too.
    pub fn read(dir: &Path) -> Result<Self, SinkError> {
        let (JournalContents { header, records, .. }, stored) = read_stored(dir)?;
        Ok(Self { dir: dir.into(), output_dir: dir.into(), header, records, stored })
    }

    /// Iterates over the records with their time series.
    pub fn records_with_series(&self) -> impl Iterator<Item = Result<Cow<'_, Record>, SinkError>> {
        self.records.iter().map(|record| self.with_series(record))
    }

    /// Returns the product name of a device, if known.
    pub fn device_name(&self, device: Device) -> Option<&str> {
        let devices = self.header.environment["devices"].as_array()?;
        let found = devices.iter().find(|known| known["device"] == device.to_string().as_str())?;
        found["name"].as_str().filter(|name| !name.is_empty())
    }

    /// Returns a record with its time series.
    pub fn with_series<'a>(&self, record: &'a Record) -> Result<Cow<'a, Record>, SinkError> {
        Ok(match self.stored.series(&record.case.id)? {
            Some(series) => {
                let mut record = record.clone();
                record.restore_series(series);
                Cow::Owned(record)
            }
            None => Cow::Borrowed(record),
        })
    }
}

/// Writer of files derived from a run.
pub trait Sink: Sync {
    /// Name on the command line.
    fn name(&self) -> &'static str;

    /// Writes the files, each atomically, and returns their paths. A sink without data writes none.
    fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError>;
}
