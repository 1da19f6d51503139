//! Temporary files of killed writers. Their names hold the process id of the writer.

use rustix::process::{Pid, test_kill_process};
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

/// Prefix of temporary files; process id and a random part follow.
const PREFIX: &str = ".calorimeter-";
/// Suffix of temporary files.
pub(crate) const SUFFIX: &str = ".tmp";

/// Prefix of this process's temporary files.
pub(crate) fn prefix() -> String {
    format!("{PREFIX}{}-", std::process::id())
}

/// Depth of files in the directory of a run: memory profiles are two levels down.
const MAX_DEPTH: u32 = 2;

/// Removes temporary files of dead writers from the directory of a run and its subdirectories.
pub(crate) fn remove_stale_in_run(dir: &Path) {
    remove_stale_below(dir, MAX_DEPTH);
}

fn remove_stale_below(dir: &Path, depth: u32) {
    remove_stale(dir);
    let Some(depth) = depth.checked_sub(1) else { return };
    let folders = fs::read_dir(dir).into_iter().flatten().flatten();
    // Symbolic links are not followed.
    for folder in folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_stale_below(&folder.path(), depth);
    }
}

/// Removes temporary files of dead writers from one directory. Files that cannot be removed are harmless.
pub(crate) fn remove_stale(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(writer).is_some_and(|writer| is_stale(&entry.path(), writer)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Process id in the name of a temporary file.
fn writer(name: &str) -> Option<Pid> {
    let (id, _) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    Pid::from_raw(id.parse().ok().filter(|&id: &i32| id > 0)?)
}

/// True if the writer is dead and the file is not locked.
///
/// Locks matter because process ids are meaningless across machines and containers, where an earlier process may have
/// had our id.
fn is_stale(path: &Path, writer: Pid) -> bool {
    let gone = || test_kill_process(writer) == Err(rustix::io::Errno::SRCH) || is_zombie(writer);
    (writer == rustix::process::getpid() || gone())
        && File::open(path).and_then(|file| file.try_lock().map_err(|_| io::Error::from(ErrorKind::Other))).is_ok()
}

/// True for a zombie process, whose parent may have died as well.
fn is_zombie(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn files_of_zombies_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let left = folder.path().join(format!("{PREFIX}{}-0{SUFFIX}", child.id()));
        fs::write(&left, "half").unwrap();
        remove_stale(folder.path());
        assert!(left.exists(), "writer process is alive");
        drop(child.stdin.take());
        let start = Instant::now();
        while left.exists() && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
            remove_stale(folder.path());
        }
        assert!(!left.exists());
        child.wait().unwrap();
    }
}
