//! Clocks locked by this program. They are released on every exit. After a kill, the next start finds a note on disk
//! and releases them.

use crate::clock_notes::{self, LockedDevice, Note, PATIENCE, file_name, folder};
use crate::devices::DiscoveredDevice;
use crate::host;
use crate::log_line::log_line;
use crate::platforms;
use crate::worker::DeviceFacts;
use calorimeter_case::Device;
use calorimeter_timing::telemetry::{ClockLock, LockedClock};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Currently locked clocks; global, because the interrupt handler must release them, too.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// Locked clock with its note on disk.
struct Held {
    lock: Box<dyn ClockLock>,
    note: Note,
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
pub struct Locks(Vec<String>);

impl Locks {
    /// Locks the clocks of all devices, or of none if one fails.
    pub fn hold<'a>(
        devices: impl IntoIterator<Item = &'a DiscoveredDevice>,
        clock: LockedClock,
    ) -> Result<Self, LockError> {
        let mut locks = Self::default();
        for found in devices {
            let refused = |why| LockError { device: found.device, why };
            let lock = platforms::of(found.device).clock_lock(found.device, &found.facts()).map_err(refused)?;
            let folder = folder()
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
            by_hand: lock.by_hand(),
            since: host::now().to_rfc3339(),
        };
        // An interrupt handler waits on this mutex until the lock is registered.
        let mut held = held();
        let mut note = Note::open(&folder.join(file_name(&found.identity)), PATIENCE)?;
        // The note is written first, because the program may be killed at any moment.
        note.write(&locked)?;
        if let Err(why) = lock.lock(clock) {
            note.clear();
            return Err(why);
        }
        held.push(Held { lock, note, locked });
        self.0.push(found.identity.clone());
        Ok(())
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        let mut held = held();
        let (released, others) = held.drain(..).partition(|one| self.0.contains(&one.locked.identity));
        *held = others;
        let released: Vec<Held> = released;
        released.into_iter().for_each(Held::undo);
    }
}

/// Releases every clock; for callers that exit without unwinding.
pub fn undo_all() {
    held().drain(..).for_each(Held::undo);
}

/// Releases clocks that a killed run left locked, and reports each.
pub fn undo_left_behind() {
    let notes = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    for path in notes.map(|entry| entry.path()) {
        // A note that is locked belongs to a run that is still active.
        let Ok(mut note) = Note::open(&path, Duration::ZERO) else { continue };
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
    platforms::of(device).clock_lock(device, &facts)?.unlock()
}

fn held() -> MutexGuard<'static, Vec<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    fn undo(mut self) {
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
    struct Scripted(Arc<Mutex<Vec<String>>>);

    impl Scripted {
        fn done(&self) -> Vec<String> {
            self.0.lock().unwrap().clone()
        }
    }

    impl ClockLock for Scripted {
        fn lock(&mut self, clock: LockedClock) -> Result<(), String> {
            self.0.lock().unwrap().push(format!("lock {clock}"));
            if clock == LockedClock::Base { Err("no right".into()) } else { Ok(()) }
        }
        fn unlock(&mut self) -> Result<(), String> {
            self.0.lock().unwrap().push("unlock".into());
            Ok(())
        }
        fn by_hand(&self) -> String {
            "by hand".into()
        }
    }

    fn held(name: &str, clock: &str, folder: &Path) -> (Scripted, Result<Locks, String>) {
        let (scripted, mut locks) = (Scripted::default(), Locks::default());
        let device = DiscoveredDevice::named(Device::Mock(0), name);
        let added = locks.add(&device, clock.parse().unwrap(), Box::new(scripted.clone()), folder);
        (scripted, added.map(|()| locks))
    }

    fn note(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join(file_name(name))).unwrap()
    }

    #[test]
    fn a_clock_is_let_go_where_its_run_ends_and_where_it_panics() {
        let folder = tempfile::tempdir().unwrap();
        let (ended, locks) = held("one that ends", "1200", folder.path());
        assert!(note(folder.path(), "one that ends").contains("1200 MHz"));
        drop(locks);
        assert_eq!(ended.done(), ["lock 1200 MHz", "unlock"]);
        let (panicked, locks) = held("one that panics", "1200", folder.path());
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _locks = locks;
            panic!("as the script says");
        }));
        assert!(panic.is_err());
        assert_eq!(panicked.done(), ["lock 1200 MHz", "unlock"]);
        assert!(["one that ends", "one that panics"].iter().all(|name| note(folder.path(), name).is_empty()));
    }

    #[test]
    fn a_refused_lock_leaves_nothing_behind_and_a_held_one_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (refused, locks) = held("refused", "base", folder.path());
        assert_eq!((locks.err().unwrap().as_str(), refused.done().len()), ("no right", 1));
        assert!(note(folder.path(), "refused").is_empty());
        let (first, locks) = held("shared", "900", folder.path());
        let (second, taken) = held("shared", "800", folder.path());
        assert_eq!((taken.err().unwrap().as_str(), second.done().len()), ("another run holds it locked", 0));
        assert!(note(folder.path(), "shared").contains("900 MHz"));
        drop(locks);
        assert_eq!(first.done().len(), 2);
    }
}
