//! File locks with a timeout.
//!
//! Retries are necessary because a child process holds the locks of its parent until exec, even if the parent was
//! killed.

use crate::SinkError;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval between attempts to lock.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Locks an open file; an error after the timeout.
pub(crate) fn lock(file: &File, path: &Path, timeout: Duration) -> Result<(), SinkError> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < timeout => std::thread::sleep(POLL_INTERVAL),
            Err(TryLockError::WouldBlock) => return Err(SinkError::Locked { path: path.to_owned() }),
            // Some network file systems have no locks. A run continues without the protection.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
}

/// Opens a file for appending, creating it if necessary, and locks it against other processes.
pub(crate) fn open_locked(path: &Path, timeout: Duration) -> Result<File, SinkError> {
    let start = Instant::now();
    loop {
        let file = File::options().read(true).append(true).create(true).open(path);
        let file = file.map_err(|cause| SinkError::write(path, cause))?;
        lock(&file, path, timeout.saturating_sub(start.elapsed()))?;
        // The previous holder of the lock may have replaced the file.
        if is_same_file(&file, path) {
            return Ok(file);
        }
        if start.elapsed() > timeout {
            return Err(SinkError::Locked { path: path.to_owned() });
        }
    }
}

/// True if a path still refers to this open file. Writes to an open file succeed even after it was deleted.
pub(crate) fn is_same_file(file: &File, path: &Path) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(open)) => (there.dev(), there.ino()) == (open.dev(), open.ino()),
        (Err(cause), _) => !matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        // Not known to be gone.
        (_, Err(_)) => true,
    }
}
