//! Notes on disk about locked clocks. Concurrent runs read them, and the next start releases clocks whose owner was
//! killed.

use calorimeter_sinks::{cache, log_line};
use calorimeter_timing::telemetry::LockedClock;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Content of a note: a device whose clock is locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedDevice {
    /// Device, e.g. `cuda:0`.
    pub device: String,
    /// Unique identity of the device.
    pub identity: String,
    /// Clock.
    pub clock: LockedClock,
    /// Shell command that undoes the lock manually.
    pub by_hand: String,
    /// Time of the lock (RFC 3339).
    pub since: String,
}

/// Note file, which survives a kill of its writer. The writer holds a file lock on it; an empty file means that no
/// clock is locked.
pub(crate) struct LockNote {
    pub path: PathBuf,
    file: File,
}

/// Timeout for acquiring the file lock. A child process inherits it briefly between fork and exec, even if the parent
/// was killed.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_millis(200);
const RETRY_DELAY: Duration = Duration::from_millis(10);

/// Returns the clock at which a device is locked by an active or killed run of this program. Unreadable notes are
/// ignored here; they are reported at startup.
pub(crate) fn locked_clock(identity: &str) -> Option<LockedClock> {
    let locked = read(&notes_dir()?.join(note_file_name(identity))).ok()??;
    Some(locked.clock)
}

/// Reads a note; `None` if it is empty.
pub fn read(path: &Path) -> Result<Option<LockedDevice>, String> {
    if fs::metadata(path).is_ok_and(|found| found.len() == 0) { Ok(None) } else { cache::read(path) }
}

/// Describes the clock settings of a device: the policy from its sensors, if any, and the lock, which sensors do not
/// report.
pub fn clock_policy(by_sensors: Option<String>, locked: Option<LockedClock>) -> String {
    let locked = locked.map(|clock| format!("clock locked at {clock}"));
    by_sensors.into_iter().chain(locked).collect::<Vec<_>>().join(", ")
}

pub(crate) fn notes_dir() -> Option<PathBuf> {
    cache::cache_dir("clock-locks")
}

pub(crate) fn note_file_name(identity: &str) -> String {
    format!("{}.json", cache::file_name(identity))
}

impl LockNote {
    /// Opens or creates a note and locks the file, waiting at most `timeout` for another holder.
    pub(crate) fn open(path: &Path, timeout: Duration) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let options = File::options().write(true).create(true).truncate(false).open(path);
        let file = options.map_err(failed)?;
        let unavailable = |error: fs::TryLockError| match error {
            fs::TryLockError::WouldBlock => "locked by another run".to_owned(),
            fs::TryLockError::Error(error) => failed(error),
        };
        let start = Instant::now();
        let locked = loop {
            match file.try_lock() {
                Err(fs::TryLockError::WouldBlock) if start.elapsed() < timeout => std::thread::sleep(RETRY_DELAY),
                ended => break ended,
            }
        };
        locked.map_err(unavailable)?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(crate) fn write(&mut self, locked: &LockedDevice) -> Result<(), String> {
        let written = self.file.set_len(0).and_then(|()| self.file.rewind());
        let text = serde_json::to_vec(locked).unwrap_or_default();
        let written = written.and_then(|()| self.file.write_all(&text)).and_then(|()| self.file.sync_all());
        written.map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// Empties the note. The file stays, because another process may have it open.
    pub(crate) fn clear(&mut self) {
        if let Err(error) = self.file.set_len(0) {
            log_line!("warning: {}: {error}; delete it", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_includes_locked_clock() {
        let clock = || "1200".parse().ok();
        assert_eq!(
            clock_policy(Some("power limit 700 W".into()), clock()),
            "power limit 700 W, clock locked at 1200 MHz"
        );
        assert_eq!(
            (clock_policy(None, clock()), clock_policy(None, None)),
            ("clock locked at 1200 MHz".into(), String::new())
        );
    }
}
