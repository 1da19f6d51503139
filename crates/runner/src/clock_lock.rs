//! Clocks that this program has locked. They are let go on every way out; where there was none, because the program was
//! killed, the next start finds a note and lets them go.

use crate::cache;
use crate::devices::DiscoveredDevice;
use crate::platforms;
use crate::run::RunError;
use crate::worker::DeviceFacts;
use calorimeter_case::Device;
use calorimeter_timing::telemetry::{ClockLock, LockedClock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is locked at this moment: whoever ends the program at once must know it, too.
static HELD: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// A clock that is locked, with its note.
struct Held {
    lock: Box<dyn ClockLock>,
    note: Note,
    told: Told,
}

/// What a note says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Told {
    device: String,
    identity: String,
    clock: LockedClock,
    /// The command by which a person undoes it.
    by_hand: String,
    since: String,
}

/// A file that outlives a program that is killed. While its writer lives, nobody else can lock it; empty it says nothing.
struct Note {
    path: PathBuf,
    file: File,
}

/// Clocks that are let go when this is dropped.
#[derive(Default)]
pub struct Locks(Vec<String>);

impl Locks {
    /// Locks the clocks of all of these devices, or of none.
    pub fn hold<'a>(
        devices: impl IntoIterator<Item = &'a DiscoveredDevice>,
        clock: LockedClock,
    ) -> Result<Self, RunError> {
        let mut locks = Self::default();
        for found in devices {
            let refused = |why| RunError::ClockLock { device: found.device.to_string(), why };
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
        let told = Told {
            device: found.device.to_string(),
            identity: found.identity.clone(),
            clock,
            by_hand: lock.by_hand(),
            since: crate::run::now().to_rfc3339(),
        };
        // A signal waits until there is something to undo.
        let mut held = held();
        let mut note = Note::open(&folder.join(file_name(&found.identity)))?;
        // First the note: a program may be killed at any moment.
        note.write(&told)?;
        if let Err(why) = lock.lock(clock) {
            note.clear();
            return Err(why);
        }
        held.push(Held { lock, note, told });
        self.0.push(found.identity.clone());
        Ok(())
    }
}

impl Drop for Locks {
    fn drop(&mut self) {
        let mut held = held();
        let (ours, others) = held.drain(..).partition(|one| self.0.contains(&one.told.identity));
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
        let Ok(mut note) = Note::open(&path) else { continue };
        let Some(told) = note.read() else { continue };
        let Told { device, identity, clock, by_hand, since } = told;
        match unlock(&device, identity) {
            Ok(()) => {
                note.clear();
                eprintln!(
                    "note: {device} was still locked at {clock} by a run of {since} that was killed; it is free now"
                );
            }
            Err(why) => eprintln!(
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

/// Where a run of this program, or one that was killed, has locked a device's clock.
pub fn locked(identity: &str) -> Option<LockedClock> {
    let told: Told = cache::read(&folder()?.join(file_name(identity)))?;
    Some(told.clock)
}

/// How a device's clocks are set: what its sensors say, where it has any, and what they cannot see.
pub fn policy(by_sensors: Option<String>, locked: Option<LockedClock>) -> String {
    let locked = locked.map(|clock| format!("clock locked at {clock}"));
    by_sensors.into_iter().chain(locked).collect::<Vec<_>>().join(", ")
}

fn folder() -> Option<PathBuf> {
    cache::folder("clock-locks")
}

fn file_name(identity: &str) -> String {
    format!("{}.json", cache::file_name(identity))
}

fn held() -> MutexGuard<'static, Vec<Held>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Held {
    fn undo(mut self) {
        match self.lock.unlock() {
            Ok(()) => self.note.clear(),
            Err(why) => {
                let Told { device, by_hand, .. } = &self.told;
                eprintln!("warning: the clock of {device} is still locked: {why}; undo it with `{by_hand}`");
            }
        }
    }
}

impl Note {
    fn open(path: &Path) -> Result<Self, String> {
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(told)?;
        }
        let options = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = options.map_err(told)?;
        let taken = |error: fs::TryLockError| match error {
            fs::TryLockError::WouldBlock => "another run holds it locked".to_owned(),
            fs::TryLockError::Error(error) => told(error),
        };
        file.try_lock().map_err(taken)?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn read(&mut self) -> Option<Told> {
        let mut text = String::new();
        self.file.read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn write(&mut self, told: &Told) -> Result<(), String> {
        let written = self.file.set_len(0).and_then(|()| self.file.rewind());
        let text = serde_json::to_vec(told).unwrap_or_default();
        let written = written.and_then(|()| self.file.write_all(&text)).and_then(|()| self.file.sync_all());
        written.map_err(|error| format!("{}: {error}", self.path.display()))
    }

    /// It stays as an empty file: one that is deleted might be in another's hands.
    fn clear(&mut self) {
        if let Err(error) = self.file.set_len(0) {
            eprintln!("warning: {}: {error}; delete it", self.path.display());
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
        let device = DiscoveredDevice::named(Device::Mock, name);
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

    #[test]
    fn a_lock_that_sensors_cannot_see_is_part_of_the_policy() {
        let clock = || "1200".parse().ok();
        assert_eq!(policy(Some("power limit 700 W".into()), clock()), "power limit 700 W, clock locked at 1200 MHz");
        assert_eq!((policy(None, clock()), policy(None, None)), ("clock locked at 1200 MHz".into(), String::new()));
    }
}
