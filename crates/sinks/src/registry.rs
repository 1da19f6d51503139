//! Every sink: ours, and those of other crates.

use std::path::PathBuf;
use std::sync::LazyLock;

use calorimeter_case::{NameTaken, Registry};

use crate::sinks::OURS;
use crate::{Run, Sink, SinkError};

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
