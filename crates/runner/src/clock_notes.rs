//! What is written down of a locked clock: whoever measures beside it should know, and whoever starts after its writer was
//! killed must let it go.

use crate::cache;
use crate::tell::tell;
use calorimeter_timing::telemetry::LockedClock;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A device whose clock is locked, as a note says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockedDevice {
    pub device: String,
    pub identity: String,
    pub clock: LockedClock,
    /// The command by which a person undoes it.
    pub by_hand: String,
    pub since: String,
}

/// A file that outlives a program that is killed. While its writer lives, nobody else can lock it; empty it says nothing.
pub struct Note {
    pub path: PathBuf,
    file: File,
}

/// A process that is being started holds the locks of its parent for a moment, also where the parent was killed meanwhile.
pub const PATIENCE: Duration = Duration::from_millis(200);
const BREATH: Duration = Duration::from_millis(10);

/// Where a run of this program, or one that was killed, has locked a device's clock. A note that cannot be read was named at
/// the start.
pub fn locked(identity: &str) -> Option<LockedClock> {
    let locked = read(&folder()?.join(file_name(identity))).ok()??;
    Some(locked.clock)
}

/// What a note says; an empty one says nothing.
pub fn read(path: &Path) -> Result<Option<LockedDevice>, String> {
    if fs::metadata(path).is_ok_and(|found| found.len() == 0) { Ok(None) } else { cache::read(path) }
}

/// How a device's clocks are set: what its sensors say, where it has any, and what they cannot see.
pub fn policy(by_sensors: Option<String>, locked: Option<LockedClock>) -> String {
    let locked = locked.map(|clock| format!("clock locked at {clock}"));
    by_sensors.into_iter().chain(locked).collect::<Vec<_>>().join(", ")
}

pub fn folder() -> Option<PathBuf> {
    cache::folder("clock-locks")
}

pub fn file_name(identity: &str) -> String {
    format!("{}.json", cache::file_name(identity))
}

impl Note {
    /// Opens it, or makes it, and locks it, once whoever holds it lets it go.
    pub fn open(path: &Path, patience: Duration) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(told)?;
        }
        let options = File::options().write(true).create(true).truncate(false).open(path);
        let file = options.map_err(told)?;
        let taken = |error: fs::TryLockError| match error {
            fs::TryLockError::WouldBlock => "another run holds it locked".to_owned(),
            fs::TryLockError::Error(error) => told(error),
        };
        let start = Instant::now();
        let locked = loop {
            match file.try_lock() {
                Err(fs::TryLockError::WouldBlock) if start.elapsed() < patience => std::thread::sleep(BREATH),
                ended => break ended,
            }
        };
        locked.map_err(taken)?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub fn write(&mut self, locked: &LockedDevice) -> Result<(), String> {
        let written = self.file.set_len(0).and_then(|()| self.file.rewind());
        let text = serde_json::to_vec(locked).unwrap_or_default();
        let written = written.and_then(|()| self.file.write_all(&text)).and_then(|()| self.file.sync_all());
        written.map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// It stays as an empty file: one that is deleted might be in another's hands.
    pub fn clear(&mut self) {
        if let Err(error) = self.file.set_len(0) {
            tell!("warning: {}: {error}; delete it", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_sensors_cannot_see_is_part_of_the_policy() {
        let clock = || "1200".parse().ok();
        assert_eq!(policy(Some("power limit 700 W".into()), clock()), "power limit 700 W, clock locked at 1200 MHz");
        assert_eq!((policy(None, clock()), policy(None, None)), ("clock locked at 1200 MHz".into(), String::new()));
    }
}
