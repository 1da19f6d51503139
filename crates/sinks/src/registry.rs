//! Registry of sinks.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::LazyLock;

use calorimeter_case::{NameTaken, Registry};

use crate::sinks::BUILT_IN;
use crate::{Sink, SinkError, SinkInput, index};

static SINKS: LazyLock<Registry<dyn Sink>> = LazyLock::new(|| {
    let registry = Registry::new("sink");
    for &sink in BUILT_IN {
        registry.add(sink.name(), sink).expect("built-in names are unique");
    }
    registry
});

/// Returns every sink: built-in ones, then registered ones.
pub fn sinks() -> Vec<&'static dyn Sink> {
    SINKS.all()
}

/// Registers a sink, which writes after all others in every run of this process.
pub fn register(sink: &'static dyn Sink) -> Result<(), NameTaken> {
    SINKS.add(sink.name(), sink)
}

/// Result of [`write_all`].
#[derive(Debug, Default)]
pub struct WriteResult {
    /// Written files.
    pub paths: Vec<PathBuf>,
    /// Errors of sinks that failed.
    pub errors: Vec<SinkError>,
}

/// Runs every sink; a failing sink does not affect the others. The last file is the index page.
pub fn write_all(run: &SinkInput) -> WriteResult {
    let mut written = run_sinks(&sinks(), run);
    match index::write(run, &written.paths) {
        Ok(path) => written.paths.push(path),
        Err(error) => written.errors.push(error),
    }
    written
}

fn run_sinks(sinks: &[&dyn Sink], run: &SinkInput) -> WriteResult {
    let mut written = WriteResult::default();
    for sink in sinks {
        // A table engine that gets no threads panics, and so may a sink of another crate.
        let result = catch_unwind(AssertUnwindSafe(|| sink.write(run)));
        match result.unwrap_or_else(|panic| {
            Err(SinkError::Panicked { sink: sink.name(), message: panic_message(panic.as_ref()) })
        }) {
            Ok(paths) => written.paths.extend(paths),
            Err(error) => written.errors.push(error),
        }
    }
    written
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown panic".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeriesStore;
    use crate::journal::Header;

    struct Fine;

    impl Sink for Fine {
        fn name(&self) -> &'static str {
            "fine"
        }
        fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
            Ok(vec![run.dir.clone()])
        }
    }

    struct Panics;

    impl Sink for Panics {
        fn name(&self) -> &'static str {
            "panics"
        }
        fn write(&self, _: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
            panic!("no threads");
        }
    }

    #[test]
    fn panicking_sink_does_not_affect_others() {
        let run = SinkInput {
            dir: "a".into(),
            output_dir: "a".into(),
            header: Header::default(),
            records: vec![],
            stored: SeriesStore::default(),
        };
        let written = run_sinks(&[&Panics, &Fine], &run);
        assert_eq!(written.paths, [PathBuf::from("a")]);
        let [SinkError::Panicked { sink: "panics", message }] = &written.errors[..] else {
            panic!("{:?}", written.errors)
        };
        assert_eq!(message, "no threads");
    }
}
