//! What derives a file from the records of a run, and the list of all that do.

use std::path::PathBuf;
use std::sync::LazyLock;

use calorimeter_case::{NameTaken, Registry};

use crate::SinkError;
use crate::accelerator::Accelerator;
use crate::csv::Csv;
use crate::journal::Header;
#[cfg(feature = "tables")]
use crate::parquet::Parquet;
use crate::torchao::Torchao;
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

/// Ours, in the order in which they write. A new one is its file and its line here.
const OURS: &[&dyn Sink] = &[
    &Csv,
    #[cfg(feature = "tables")]
    &Parquet,
    &Torchao,
    &Accelerator,
];

static SINKS: LazyLock<Registry<dyn Sink>> = LazyLock::new(|| {
    let registry = Registry::new("sink");
    for &sink in OURS {
        registry.add(sink.name(), sink).expect("each of ours has a name of its own");
    }
    registry
});

/// Every sink: ours, then those that were registered.
pub fn sinks() -> Vec<&'static dyn Sink> {
    SINKS.all()
}

/// Adds a sink, which writes after the others in every run of this process.
pub fn register(sink: &'static dyn Sink) -> Result<(), NameTaken> {
    SINKS.add(sink.name(), sink)
}

/// The files that this build cannot write, because it was made without the feature `tables`.
pub fn not_in_this_build() -> &'static [&'static str] {
    if cfg!(feature = "tables") { &[] } else { &["results.parquet"] }
}

/// What [`write_all`] wrote, and what it could not.
#[derive(Debug, Default)]
pub struct Written {
    /// The files that are there now.
    pub paths: Vec<PathBuf>,
    /// Why others are not.
    pub errors: Vec<SinkError>,
}

/// Runs every sink. One that fails does not take the others with it.
pub fn write_all(run: &Run) -> Written {
    let mut written = Written::default();
    for sink in sinks() {
        match sink.write(run) {
            Ok(paths) => written.paths.extend(paths),
            Err(error) => written.errors.push(error),
        }
    }
    written
}
