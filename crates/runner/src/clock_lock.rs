//! Clocks that this program has locked. They are let go on every way out; where there was none, because the program was
//! killed, the next start finds a note and lets them go.

use crate::clock_notes::{self, LockedDevice, Note, PATIENCE, file_name, folder};
use crate::devices::DiscoveredDevice;
use crate::host;
use crate::platforms;
use crate::tell::tell;
use crate::worker::DeviceFacts;
use calorimeter_case::Device;
use calorimeter_timing::telemetry::{ClockLock, LockedClock};
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is locked at this moment: whoever ends the program at once must know it, too.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// A clock that is locked, with its note.
struct Held {
    lock: Box<dyn ClockLock>,
    note: Note,
    locked: LockedDevice,
}

/// Why a clock cannot be locked.
#[derive(Debug, thiserror::Error)]
#[error("--lock-clocks: {device}: {why}")]
pub struct LockError {
    device: Device,
    why: String,
}

/// Clocks that are let go when this is dropped.
#[derive(Default)]
pub struct Locks(Vec<String>);

impl Locks {
    /// Locks the clocks of all of these devices, or of none.
    pub fn hold<'a>(
        devices: impl IntoIterator<Item = &'a DiscoveredDevice>,
        clock: LockedClock,
    ) -> Result<Self, LockError> {
        let mut locks = Self::default();
        for found in devices {
            let refused = |why| LockError { device: found.device, why };
            let lock = platforms::of(found.device).clock_lock(found.device, &found.facts()).map_err(refused)?;
            let folder = folder().ok_or_else(|| refused("its note has no place: set HOME or XDG_CACHE_HOME".into()))?;
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
        // A signal waits until there is something to undo.
        let mut held = held();
        let mut note = Note::open(&folder.join(file_name(&found.identity)), PATIENCE)?;
        // First the note: a program may be killed at any moment.
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
        let (ours, others) = held.drain(..).partition(|one| self.0.contains(&one.locked.identity));
        *held = others;
        let ours: Vec<Held> = ours;
        ours.into_iter().for_each(Held::undo);
    }
}

/// Lets every clock go, for whoever ends the program without unwinding.
pub fn undo_all() {
    held().drain(..).for_each(Held::undo);
}

/// Lets the clocks go that a killed program has left locked, and says so.
pub fn undo_left_behind() {
    let notes = folder().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    for path in notes.map(|entry| entry.path()) {
        // One that cannot be locked belongs to a run that goes on.
        let Ok(mut note) = Note::open(&path, Duration::ZERO) else { continue };
        let locked = match clock_notes::read(&path) {
            Ok(Some(locked)) => locked,
            Ok(None) => continue,
            Err(why) => {
                tell!(
                    "warning: a run that was killed may have left a clock locked: {why}; see to it, and delete the note"
                );
                continue;
            }
        };
        let LockedDevice { device, identity, clock, by_hand, since } = locked;
        match unlock(&device, identity) {
            Ok(()) => {
                note.clear();
                tell!("note: {device} was still locked at {clock} by a run of {since} that was killed; it is free now");
            }
            Err(why) => tell!(
                "warning: {device} is still locked at {clock} by a run of {since} that was killed, and cannot be freed: \
                 {why}; do it with `{by_hand}`, and delete {}",
                path.display()
            ),
        }
    }
}

fn unlock(device: &str, identity: String) -> Result<(), String> {
    let device: Device = device.parse().map_err(|_| format!("there are no devices like {device}"))?;
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
                tell!("warning: the clock of {device} is still locked: {why}; undo it with `{by_hand}`");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    /// Keeps what was done to it.
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
