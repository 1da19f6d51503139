//! Atomic replacement of files, durable across power loss. The crate that writes run folders has its own version with
//! locks and cleanup.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lets `write` fill a temporary file in the folder of `path`, syncs it and renames it to `path`: readers see the old
/// file or the new one, never a part.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (file, temporary) = create_temporary(folder)?;
    let written = write(&file).and_then(|()| file.sync_all());
    let saved = written.and_then(|()| fs::rename(&temporary, path));
    if saved.is_err() {
        let _ = fs::remove_file(&temporary);
        return saved;
    }
    // Makes the rename durable. Not every file system supports this, and the file is valid without it.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Creates a new file in a folder. An existing file is never opened: the name is predictable, and a link of that name
/// would be followed.
fn create_temporary(folder: &Path) -> io::Result<(File, PathBuf)> {
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        // Calorimeter's runs recognize these names and remove leftovers of killed processes.
        let path = folder.join(format!(".calorimeter-{}-{number}.tmp", std::process::id()));
        match File::create_new(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn existing_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        for number in 0..1000 {
            let name = format!(".calorimeter-{}-{number}.tmp", std::process::id());
            std::os::unix::fs::symlink(&victim, folder.path().join(name)).unwrap();
        }
        replace(&folder.path().join("case.json"), |mut file| file.write_all(b"whole")).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        assert_eq!(fs::read(folder.path().join("case.json")).unwrap(), b"whole");
    }

    #[test]
    fn failed_write_keeps_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("case.json");
        replace(&path, |mut file| file.write_all(b"whole")).unwrap();
        let error = replace(&path, |mut file| {
            file.write_all(b"half")?;
            Err(io::Error::other("the disk is full"))
        });
        assert_eq!(error.unwrap_err().to_string(), "the disk is full");
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}
