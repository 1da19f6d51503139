//! Everything that can go wrong when results are stored, as sentences for the person who can act on them.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why results could not be stored or read back. The text names the place and what is wrong there, and
/// [`source`](Error::source) has what the system or the format's library said.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The folder for results cannot be made or written.
    #[error("cannot write in the folder {dir}")]
    NotWritable {
        /// The folder.
        dir: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// No space left.
    #[error("cannot write {path}: the disk or the quota is full")]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Writing failed for another reason; what was written before is intact.
    #[error("cannot write {path}")]
    Write {
        /// The file that was being written.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Reading failed.
    #[error("cannot read {path}")]
    Read {
        /// The file that was being read.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// A value cannot be written in the format of the file.
    #[error("cannot bring the results into the format of {path}")]
    Format {
        /// The file that was to be written.
        path: PathBuf,
        /// What the format's library said.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// A page with the name of ours.
    #[error(
        "{path} was not written by calorimeter, and is left alone: move it away, then `calorimeter render` writes one"
    )]
    NotOurIndex {
        /// The page.
        path: PathBuf,
    },
    /// A sink broke down.
    #[error("the sink `{sink}` panicked: {said}")]
    Panicked {
        /// Its name.
        sink: &'static str,
        /// What it said.
        said: String,
    },
    /// A new run was to start in the folder of an old one.
    #[error("{path} already exists")]
    JournalExists {
        /// The journal that is there.
        path: PathBuf,
    },
    /// There is no run to continue or to read.
    #[error("{path} does not exist, so there is no run to read or continue")]
    JournalMissing {
        /// The journal that is not there.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// The file is something else.
    #[error(
        "{path} is not a calorimeter journal: its first line is not our header; check the folder, nothing was changed"
    )]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// A table that does not hold records.
    #[error("{path} is no results.parquet of ours: {why}")]
    NotOurTable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A Parquet file, in a program that was built without polars.
    #[error(
        "{path} cannot be read: this program was built without the feature `tables`; give the run's folder instead"
    )]
    NeedsTables {
        /// The file.
        path: PathBuf,
    },
    /// The journal comes from a newer program.
    #[error(
        "{path} has journal version {found}, and this program knows versions up to {known}; use a newer calorimeter"
    )]
    NewerVersion {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// The run to continue was made from another configuration.
    #[error("{path} was started from a configuration with the fingerprint {found}, and the one given now has {given}")]
    OtherConfig {
        /// The journal.
        path: PathBuf,
        /// The fingerprint in its header.
        found: String,
        /// The fingerprint of the configuration given now.
        given: String,
    },
    /// A complete line of the journal makes no sense: the file was damaged or edited.
    #[error("{path}:{line}: not a journal line")]
    BadLine {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the JSON parser said.
        #[source]
        cause: serde_json::Error,
    },
    /// Another process is writing the same run.
    #[error("{path} is being written by another process")]
    Locked {
        /// The journal.
        path: PathBuf,
    },
    /// What the run writes can no longer be found.
    #[error(
        "{path} is no longer the file that this run writes: its folder was removed or moved, or the file was replaced"
    )]
    JournalLost {
        /// Where the journal was.
        path: PathBuf,
    },
    /// The start of the run, which names a derived file, is not a time.
    #[error("the run's start in the first line of {journal}, {started:?}, is not an RFC 3339 time")]
    BadTime {
        /// The journal whose header holds it.
        journal: PathBuf,
        /// The text found.
        started: String,
        /// What the parser said.
        #[source]
        cause: chrono::ParseError,
    },
}

impl SinkError {
    /// The text followed by those of its causes, for a place that shows one line.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

    /// A failed write, with a full disk told apart because its way out is another one.
    pub(crate) fn write(path: &Path, cause: io::Error) -> SinkError {
        let path = path.to_owned();
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => SinkError::DiskFull { path, cause },
            _ => SinkError::Write { path, cause },
        }
    }

    pub(crate) fn format(path: &Path, cause: impl Into<Box<dyn Error + Send + Sync>>) -> SinkError {
        SinkError::Format { path: path.to_owned(), cause: cause.into() }
    }
}
