//! Errors of storing and reading results.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Error of storing or reading results. The message names the path and the problem; [`source`](Error::source) is the
/// error of the system or of the format library.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// Results directory that cannot be created or written.
    #[error("cannot write to the directory {dir}")]
    NotWritable {
        /// Directory.
        dir: PathBuf,
        /// System error.
        #[source]
        cause: io::Error,
    },
    /// No space left.
    #[error("cannot write {path}: the disk or the quota is full")]
    DiskFull {
        /// File being written.
        path: PathBuf,
        /// System error.
        #[source]
        cause: io::Error,
    },
    /// Other write error. Earlier content is intact.
    #[error("cannot write {path}")]
    Write {
        /// File being written.
        path: PathBuf,
        /// System error.
        #[source]
        cause: io::Error,
    },
    /// Read error.
    #[error("cannot read {path}")]
    Read {
        /// File being read.
        path: PathBuf,
        /// System error.
        #[source]
        cause: io::Error,
    },
    /// Value that the file format cannot represent.
    #[error("cannot convert the results to the format of {path}")]
    Format {
        /// File being written.
        path: PathBuf,
        /// Error of the format library.
        #[source]
        cause: Box<dyn Error + Send + Sync>,
    },
    /// Existing index page that calorimeter did not write.
    #[error("{path} was not written by calorimeter and is not overwritten; move it, then run `calorimeter render`")]
    NotOurIndex {
        /// Page.
        path: PathBuf,
    },
    /// Panic of a sink.
    #[error("the sink `{sink}` panicked: {message}")]
    Panicked {
        /// Name of the sink.
        sink: &'static str,
        /// Panic message.
        message: String,
    },
    /// Existing journal in the directory of a new run.
    #[error("{path} already exists")]
    JournalExists {
        /// Existing journal.
        path: PathBuf,
    },
    /// Missing journal of a run to resume or read.
    #[error("{path} does not exist: expected a run to read or resume")]
    JournalMissing {
        /// Expected path of the journal.
        path: PathBuf,
        /// System error.
        #[source]
        cause: io::Error,
    },
    /// File that is not a journal.
    #[error("{path} is not a calorimeter journal: invalid first line; check the directory; nothing was changed")]
    NotAJournal {
        /// File.
        path: PathBuf,
    },
    /// Parquet file that does not hold records.
    #[error("{path} is not a results.parquet written by calorimeter: {why}")]
    NotOurTable {
        /// File.
        path: PathBuf,
        /// Problem.
        why: String,
    },
    /// Parquet file in a build without polars.
    #[error("cannot read {path}: this build lacks the feature `tables`; use the directory of the run instead")]
    NeedsTables {
        /// File.
        path: PathBuf,
    },
    /// Journal of a newer version.
    #[error("{path} has journal version {found}, newer than the supported version {known}; use a newer calorimeter")]
    NewerVersion {
        /// Journal.
        path: PathBuf,
        /// Version of the journal.
        found: u32,
        /// Newest supported version.
        known: u32,
    },
    /// Run that was started from another configuration.
    #[error("{path} was started with configuration fingerprint {found}, but the given configuration has {given}")]
    OtherConfig {
        /// Journal.
        path: PathBuf,
        /// Fingerprint in the header.
        found: String,
        /// Fingerprint of the given configuration.
        given: String,
    },
    /// Invalid complete line of a journal, which was damaged or edited.
    #[error("{path}:{line}: not a journal line")]
    BadLine {
        /// Journal.
        path: PathBuf,
        /// Line number, starting at 1.
        line: usize,
        /// JSON parser error.
        #[source]
        cause: serde_json::Error,
    },
    /// Journal that another process is writing.
    #[error("{path} is being written by another process")]
    Locked {
        /// Journal.
        path: PathBuf,
    },
    /// Open journal that is no longer reachable by its path.
    #[error(
        "{path} is no longer the journal of this run: its directory was removed or moved, or the file was replaced"
    )]
    JournalLost {
        /// Former path of the journal.
        path: PathBuf,
    },
    /// Invalid start time in the header, from which the name of a derived file follows.
    #[error("invalid start time {started:?} in the first line of {journal}: expected RFC 3339")]
    BadTime {
        /// Journal with this header.
        journal: PathBuf,
        /// Invalid start time.
        started: String,
        /// Time parser error.
        #[source]
        cause: chrono::ParseError,
    },
}

impl SinkError {
    /// Message followed by the messages of all causes, in one line.
    pub fn with_causes(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

    /// Converts a write error; a full disk is a separate variant because its remedy differs.
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
