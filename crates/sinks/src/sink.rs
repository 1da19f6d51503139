//! What derives files from the records of a run.

use std::path::PathBuf;

use crate::SinkError;
use crate::journal::Header;
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
    /// The records in the order of the plan.
    pub records: Vec<Record>,
}

/// Derives files from a run.
pub trait Sink: Sync {
    /// What it is called on the command line.
    fn name(&self) -> &'static str;

    /// Writes the files, each atomically, and says where they are. Without anything to say it writes none.
    fn write(&self, run: &Run) -> Result<Vec<PathBuf>, SinkError>;
}
