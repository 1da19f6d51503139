//! Everything that can go wrong when results are stored, as sentences for the person who can act on them.

use std::io;
use std::path::{Path, PathBuf};

/// Why results could not be stored or read back. The text names the place, the cause and the way out.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The folder for results cannot be made or written.
    #[error("cannot write in the folder {dir}: {cause}; choose another one with --out")]
    NotWritable {
        /// The folder.
        dir: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// No space left.
    #[error("cannot write {path}: the disk or the quota is full; free some space and continue with --resume")]
    DiskFull {
        /// The file that was being written.
        path: PathBuf,
    },
    /// Writing failed for another reason.
    #[error("cannot write {path}: {cause}; what was written before is intact and can be continued with --resume")]
    Write {
        /// The file that was being written.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Reading failed.
    #[error("cannot read {path}: {cause}; check that the path and its permissions are right")]
    Read {
        /// The file that was being read.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// A value cannot be written in the format of the file.
    #[error("cannot bring the results into the format of {path}: {cause}; please report this, the journal is unharmed")]
    Format {
        /// The file that was to be written.
        path: PathBuf,
        /// What the format's library said.
        cause: String,
    },
    /// A new run was to start in the folder of an old one.
    #[error("{path} already exists; continue that run with --resume, or choose another folder with --out")]
    JournalExists {
        /// The journal that is there.
        path: PathBuf,
    },
    /// There is no run to continue or to read.
    #[error(
        "{path} does not exist, so there is no run to read or continue; check the folder, or start a new run with --out"
    )]
    JournalMissing {
        /// The journal that is not there.
        path: PathBuf,
    },
    /// The file is something else.
    #[error(
        "{path} is not a calorimeter journal: its first line is not our header; check the folder, nothing was changed"
    )]
    NotAJournal {
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
    #[error(
        "{path} was started from a configuration with the fingerprint {found}, and the one given now has {given}; \
         give the same configuration and options as then, or start a new run with another --out"
    )]
    OtherConfig {
        /// The journal.
        path: PathBuf,
        /// The fingerprint in its header.
        found: String,
        /// The fingerprint of the configuration given now.
        given: String,
    },
    /// A complete line of the journal makes no sense.
    #[error(
        "{path}:{line}: not a journal line: {cause}; the file was damaged or edited: delete this line to drop its case"
    )]
    BadLine {
        /// The journal.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// What the JSON parser said.
        cause: serde_json::Error,
    },
    /// Another process is writing the same run.
    #[error("{path} is being written by another process; wait for it to end, or choose another folder with --out")]
    Locked {
        /// The journal.
        path: PathBuf,
    },
    /// The start of the run, which names a derived file, is not a time.
    #[error("the run's start {started:?} is not an RFC 3339 time: {cause}; mend the first line of {journal}")]
    BadTime {
        /// The journal whose header holds it.
        journal: PathBuf,
        /// The text found.
        started: String,
        /// What the parser said.
        cause: chrono::ParseError,
    },
}

impl SinkError {
    /// A failed write, with a full disk told apart because its way out is another one.
    pub(crate) fn write(path: &Path, cause: io::Error) -> SinkError {
        let path = path.to_owned();
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => SinkError::DiskFull { path },
            _ => SinkError::Write { path, cause },
        }
    }

    pub(crate) fn format(path: &Path, cause: impl ToString) -> SinkError {
        SinkError::Format { path: path.to_owned(), cause: cause.to_string() }
    }
}
