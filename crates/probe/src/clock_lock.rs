//! Clocks locked by this program. They are released on every exit. After a kill, the next start finds a note on disk
//! and releases them.

use crate::clock_notes::{self, LOCK_TIMEOUT, LockNote, LockedDevice, note_file_name, notes_dir};
use crate::devices::DeviceFacts;
use crate::devices::DiscoveredDevice;
use crate::host;
use crate::platforms;
use calorimeter_case::Device;
use calorimeter_sinks::log_line;
use calorimeter_timing::telemetry::{ClockLock, LockedClock};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Currently locked clocks; global, because the interrupt handler must release them, too.
static ACTIVE_LOCKS: Mutex<Vec<ActiveLock>> = Mutex::new(Vec::new());

/// Locked clock with its note on disk.
struct ActiveLock {
    lock: Box<dyn ClockLock>,
    note: LockNote,
    locked: LockedDevice,
}

/// Error of `--lock-clocks`.
#[derive(Debug, thiserror::Error)]
#[error("--lock-clocks: {device}: {why}")]
pub struct LockError {
    device: Device,
    why: String,
}

/// Locked clocks, released on drop. Holds the identities of their devices.
#[derive(Default)]
pub struct ClockLocks(Vec<String>);

impl ClockLocks {
    /// Locks the clocks of all devices, or of none if one fails.
    pub fn acquire<'a>(
        devices: impl IntoIterator<Item = &'a DiscoveredDevice>,
        clock: LockedClock,
    ) -> Result<Self, LockError> {
        let mut locks = Self::default();
        for found in devices {
            let refused = |why| LockError { device: found.device, why };
            let lock = platforms::for_device(found.device).clock_lock(found.device, &found.facts()).map_err(refused)?;
            let folder = notes_dir()
                .ok_or_else(|| refused("no cache directory for its note: set HOME or XDG_CACHE_HOME".into()))?;
            locks.add(found, clock, lock, &folder).map_err(refused)?;
        }
        Ok(locks)
    }

    fn add(
        &mut self,
        found: &DiscoveredDevice,
        clock: LockedClock,
        mut lock: Box<dyn ClockLock>,
        folder: &Path,
    ) -> Result<(), String> {
        let locked = LockedDevice {
            device: found.device.to_string(),
            identity: found.identity.clone(),
            clock,
            by_hand: lock.unlock_command(),
            since: host::now().to_rfc3339(),
        };
        // An interrupt handler waits on this mutex until the lock is registered.
        let mut held = active_locks();
        let mut note = LockNote::open(&folder.join(note_file_name(&found.identity)), LOCK_TIMEOUT)?;
        // The note is written first, because the program may be killed at any moment.
        note.write(&locked)?;
        if let Err(why) = lock.lock(clock) {
            note.clear();
            return Err(why);
        }
        held.push(ActiveLock { lock, note, locked });
        self.0.push(found.identity.clone());
        Ok(())
    }
}

impl Drop for ClockLocks {
    fn drop(&mut self) {
        let mut held = active_locks();
        let (released, others) = held.drain(..).partition(|one| self.0.contains(&one.locked.identity));
        *held = others;
        let released: Vec<ActiveLock> = released;
        released.into_iter().for_each(ActiveLock::release);
    }
}

/// Releases every clock; for callers that exit without unwinding.
pub fn release_all() {
    active_locks().drain(..).for_each(ActiveLock::release);
}

/// Releases clocks that a killed run left locked, and reports each.
pub fn release_stale() {
    let notes = notes_dir().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    for path in notes.map(|entry| entry.path()) {
        // A note that is locked belongs to a run that is still active.
        let Ok(mut note) = LockNote::open(&path, Duration::ZERO) else { continue };
        let locked = match clock_notes::read(&path) {
            Ok(Some(locked)) => locked,
            Ok(None) => continue,
            Err(why) => {
                log_line!(
                    "warning: a killed run may have left a clock locked: {why}; check the clock and delete the note"
                );
                continue;
            }
        };
        let LockedDevice { device, identity, clock, by_hand, since } = locked;
        match unlock(&device, identity) {
            Ok(()) => {
                note.clear();
                log_line!("note: released {device}: a killed run of {since} had left it locked at {clock}");
            }
            Err(why) => log_line!(
                "warning: a killed run of {since} left {device} locked at {clock}, and it cannot be released: {why}; \
                 run `{by_hand}` and delete {}",
                path.display()
            ),
        }
    }
}

fn unlock(device: &str, identity: String) -> Result<(), String> {
    let device: Device = device.parse().map_err(|_| format!("unknown device {device}"))?;
    let facts = DeviceFacts { identity, ..DeviceFacts::default() };
    platforms::for_device(device).clock_lock(device, &facts)?.unlock()
}

fn active_locks() -> MutexGuard<'static, Vec<ActiveLock>> {
    ACTIVE_LOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ActiveLock {
    fn release(mut self) {
        match self.lock.unlock() {
            Ok(()) => self.note.clear(),
            Err(why) => {
                let LockedDevice { device, by_hand, .. } = &self.locked;
                log_line!("warning: the clock of {device} is still locked: {why}; release it with `{by_hand}`");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// Clock lock that records its calls.
    #[derive(Clone, Default)]
    struct ScriptedLock(Arc<Mutex<Vec<String>>>);

    impl ScriptedLock {
        fn calls(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    impl ClockLock for ScriptedLock {
        fn lock(&mut self, clock: LockedClock) -> Result<(), String> {
            self.0.lock().unwrap().push(format!("lock {clock}"));
            if clock == LockedClock::Base { Err("no right".into()) } else { Ok(()) }
        }
        fn unlock(&mut self) -> Result<(), String> {
            self.0.lock().unwrap().push("unlock".into());
            Ok(())
        }
        fn unlock_command(&self) -> String {
            "by hand".into()
        }
    }

    fn acquire_scripted(name: &str, clock: &str, folder: &Path) -> (ScriptedLock, Result<ClockLocks, String>) {
        let (scripted, mut locks) = (ScriptedLock::default(), ClockLocks::default());
        let device = DiscoveredDevice::with_name(Device::Mock(0), name);
        let added = locks.add(&device, clock.parse().unwrap(), Box::new(scripted.clone()), folder);
        (scripted, added.map(|()| locks))
    }

    fn note(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join(note_file_name(name))).unwrap()
    }

    #[test]
    fn clock_is_released_on_exit_and_panic() {
        let folder = tempfile::tempdir().unwrap();
        let (ended, locks) = acquire_scripted("one that ends", "1200", folder.path());
        assert!(note(folder.path(), "one that ends").contains("1200 MHz"));
        drop(locks);
        assert_eq!(ended.calls(), ["lock 1200 MHz", "unlock"]);
        let (panicked, locks) = acquire_scripted("one that panics", "1200", folder.path());
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _locks = locks;
            panic!("as the script says");
        }));
        assert!(panic.is_err());
        assert_eq!(panicked.calls(), ["lock 1200 MHz", "unlock"]);
        assert!(["one that ends", "one that panics"].iter().all(|name| note(folder.path(), name).is_empty()));
    }

    #[test]
    fn failed_lock_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (refused, locks) = acquire_scripted("refused", "base", folder.path());
        assert_eq!((locks.err().unwrap().as_str(), refused.calls().len()), ("no right", 1));
        assert!(note(folder.path(), "refused").is_empty());
        let (first, locks) = acquire_scripted("shared", "900", folder.path());
        let (second, taken) = acquire_scripted("shared", "800", folder.path());
        assert_eq!((taken.err().unwrap().as_str(), second.calls().len()), ("locked by another run", 0));
        assert!(note(folder.path(), "shared").contains("900 MHz"));
        drop(locks);
        assert_eq!(first.calls().len(), 2);
    }
}
