//! Atomic writes of derived files: written to a temporary file in the same directory, synced, then renamed.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::{SinkError, stale_files};

/// Writes `bytes` to `path` atomically, creating its directory if necessary. A reader sees the old or the new file.
///
/// A symbolic link is replaced by the file, because it may have been placed there by someone else.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), SinkError> {
    write_with(path, |file| file.write_all(bytes).map_err(|cause| SinkError::write(path, cause)))
}

/// Writes to a path that the user named. Symbolic links, devices and pipes such as `/dev/stdout` are written directly,
/// hence not atomically; other paths as by [`write`](fn@write).
pub fn write_named(path: &Path, bytes: &[u8]) -> Result<(), SinkError> {
    let failed = |cause| SinkError::write(path, cause);
    if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return File::create(path).and_then(|mut file| file.write_all(bytes)).map_err(failed);
    }
    write(path, bytes)
}

/// Writes a file atomically from a function that streams its content.
pub fn write_with(path: &Path, content: impl FnOnce(&mut File) -> Result<(), SinkError>) -> Result<(), SinkError> {
    let failed = |cause| SinkError::write(path, cause);
    let dir = parent_dir(path);
    fs::create_dir_all(dir).map_err(failed)?;
    let mut temporary = temporary_in(dir).map_err(failed)?;
    content(temporary.as_file_mut())?;
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(path).map_err(|refused| failed(refused.error))?;
    sync_dir(dir);
    Ok(())
}

/// Writes a file atomically unless the path exists; returns true if it was written.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, SinkError> {
    persist_new(path, bytes).map_err(|cause| SinkError::write(path, cause))
}

fn persist_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let dir = parent_dir(path);
    fs::create_dir_all(dir)?;
    let mut temporary = temporary_in(dir)?;
    temporary.write_all(bytes)?;
    temporary.as_file().sync_all()?;
    match temporary.persist_noclobber(path) {
        Ok(_) => sync_dir(dir),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error.error),
    }
    Ok(true)
}

/// Creates a file in `dir` that is deleted unless it is persisted, and removes temporary files of killed writers.
///
/// The file has the permissions of an ordinary new file; private permissions would remain after renaming.
pub(crate) fn temporary_in(dir: &Path) -> io::Result<tempfile::NamedTempFile> {
    // Until it is locked, a file of this process looks like one left by an earlier process with the same id.
    static CLEANUP_LOCK: Mutex<()> = Mutex::new(());
    let _turn = CLEANUP_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    stale_files::remove_stale(dir);
    let file = tempfile::Builder::new()
        .prefix(&stale_files::prefix())
        .suffix(stale_files::SUFFIX)
        .append(true)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(dir)?;
    // Without lock support, the process id in the name is the only sign of a live writer.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// Makes a rename durable. Errors are ignored: not every file system supports it, and the file is complete anyway.
pub(crate) fn sync_dir(dir: &Path) {
    let _ = File::open(dir).and_then(|dir| dir.sync_all());
}

fn parent_dir(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn writing_replaces_and_leaves_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/er/results.csv");
        write(&path, b"old, and longer").unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(path.parent().unwrap()), ["results.csv"]);
    }

    #[test]
    fn write_new_keeps_existing_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/profile.json");
        assert!(write_new(&path, b"first").unwrap());
        assert!(!write_new(&path, b"second").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(path.parent().unwrap()), ["profile.json"]);
    }

    #[test]
    fn files_have_ordinary_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, plain) = (dir.path().join("ours"), dir.path().join("plain"));
        write(&ours, b"x").unwrap();
        fs::write(&plain, b"x").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }

    #[test]
    fn failed_writes_leave_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        fs::write(taken.join("content"), b"x").unwrap();
        let error = write(&taken, b"x").unwrap_err();
        assert!(matches!(&error, SinkError::Write { path, .. } if *path == taken), "{error}");
        assert_eq!(names(dir.path()), ["taken"]);
    }

    /// Id of a process that has exited.
    fn nobody() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn stale_temporary_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let name = |writer: u32, end: &str| dir.path().join(format!(".calorimeter-{writer}-{end}"));
        let (dead, other, ours) = (nobody(), std::os::unix::process::parent_id(), std::process::id());
        let left = [name(dead, "aB3dE9.tmp"), name(ours, "aB3dE9.tmp")];
        let kept = [
            name(other, "aB3dE9.tmp"),
            name(dead, "locked.tmp"),
            name(dead, "notes.txt"),
            dir.path().join(".calorimeter-notes.tmp"),
            dir.path().join("kept.tmp"),
        ];
        for path in left.iter().chain(&kept) {
            fs::write(path, b"half").unwrap();
        }
        let held = File::open(&kept[1]).unwrap();
        held.try_lock().unwrap();
        write(&dir.path().join("results.csv"), b"whole").unwrap();
        assert!(left.iter().all(|path| !path.exists()), "{:?}", names(dir.path()));
        assert!(kept.iter().all(|path| path.exists()), "{:?}", names(dir.path()));
    }

    #[test]
    fn live_temporary_files_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mine = temporary_in(dir.path()).unwrap();
        write(&dir.path().join("results.csv"), b"whole").unwrap();
        mine.persist(dir.path().join("mine")).unwrap();
    }

    #[test]
    fn only_named_symlinks_are_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (link, target) = (dir.path().join("latest.json"), dir.path().join("run-7.json"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_named(&link, b"x").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&target).unwrap(), b"x");
        write(&link, b"y").unwrap();
        assert_eq!((fs::read(&link).unwrap(), fs::read(&target).unwrap()), (b"y".to_vec(), b"x".to_vec()));
    }

    #[test]
    fn devices_are_written_directly() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            return; // macOS has none
        }
        let error = write_named(full, b"x").unwrap_err();
        assert!(matches!(&error, SinkError::DiskFull { path, .. } if path == full), "{error}");
        write_named(Path::new("/dev/null"), b"x").unwrap();
    }
}
