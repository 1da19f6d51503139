//! What killed writers leave behind: temporary files, whose names say who wrote them.

use rustix::process::{Pid, test_kill_process};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// What the names of temporary files begin with; the id of their writer and what tells them apart follow.
const PREFIX: &str = ".calorimeter-";
/// What they end with.
pub(crate) const SUFFIX: &str = ".tmp";

/// What the names of this process's temporary files begin with.
pub(crate) fn prefix() -> String {
    format!("{PREFIX}{}-", std::process::id())
}

/// How deep files of a run lie in its folder: memory profiles lie in one for all, and there in one for each case.
const DEPTH: u32 = 2;

/// Removes from the folder of a run, and from those in it, what writers left behind that are gone.
pub(crate) fn clear_run(dir: &Path) {
    clear_below(dir, DEPTH);
}

fn clear_below(dir: &Path, depth: u32) {
    clear(dir);
    let Some(depth) = depth.checked_sub(1) else { return };
    let folders = fs::read_dir(dir).into_iter().flatten().flatten();
    // One that is a link is none of the run's.
    for folder in folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        clear_below(&folder.path(), depth);
    }
}

/// The same of one folder. What cannot be removed stays, and harms nobody.
pub(crate) fn clear(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(writer).is_some_and(|writer| is_left_over(&entry.path(), writer)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The process that a temporary file's name tells of.
fn writer(name: &str) -> Option<Pid> {
    let (id, _) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    Pid::from_raw(id.parse().ok().filter(|&id: &i32| id > 0)?)
}

/// A file is in use as long as its writer lives, or its lock is held: ids mean nothing to another machine or container,
/// where an earlier process may also have had our own.
fn is_left_over(path: &Path, writer: Pid) -> bool {
    let gone = || test_kill_process(writer) == Err(rustix::io::Errno::SRCH) || has_ended(writer);
    (writer == rustix::process::getpid() || gone())
        && File::open(path).and_then(|file| file.try_lock().map_err(|_| io::Error::from(ErrorKind::Other))).is_ok()
}

/// Whether a process is dead and nobody has asked how it ended: the one that killed it may be dead as well.
fn has_ended(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn what_a_dead_process_left_goes_even_if_nobody_has_asked_how_it_ended() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let left = folder.path().join(format!("{PREFIX}{}-0{SUFFIX}", child.id()));
        fs::write(&left, "half").unwrap();
        clear(folder.path());
        assert!(left.exists(), "its writer lives");
        drop(child.stdin.take());
        let start = Instant::now();
        while left.exists() && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
            clear(folder.path());
        }
        assert!(!left.exists());
        child.wait().unwrap();
    }
}
