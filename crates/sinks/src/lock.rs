//! Locks of files, which are waited for: a process that is being started holds those of its parent until it has become
//! another program, also where the parent was killed meanwhile.

use crate::SinkError;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often a lock that somebody holds is asked for.
const BREATH: Duration = Duration::from_millis(10);

/// Locks an open file, once whoever holds it lets it go.
pub(crate) fn lock(file: &File, path: &Path, patience: Duration) -> Result<(), SinkError> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if start.elapsed() < patience => std::thread::sleep(BREATH),
            Err(TryLockError::WouldBlock) => return Err(SinkError::Locked { path: path.to_owned() }),
            // Some network file systems have no locks. They guard against slips, so a run goes on without them there.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
        }
    }
}

/// Opens a file to which several processes add, making it if need be, and locks it.
pub(crate) fn open_alone(path: &Path, patience: Duration) -> Result<File, SinkError> {
    let start = Instant::now();
    loop {
        let file = File::options().read(true).append(true).create(true).open(path);
        let file = file.map_err(|cause| SinkError::write(path, cause))?;
        lock(&file, path, patience.saturating_sub(start.elapsed()))?;
        // Whoever held the lock may have put another file in its place.
        if is_at(&file, path) {
            return Ok(file);
        }
        if start.elapsed() > patience {
            return Err(SinkError::Locked { path: path.to_owned() });
        }
    }
}

/// Whether a path still leads to this open file. An open file takes lines long after nobody can find it.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(open)) => (there.dev(), there.ino()) == (open.dev(), open.ino()),
        (Err(cause), _) => !matches!(cause.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        // What cannot be asked is not known to be gone.
        (_, Err(_)) => true,
    }
}
