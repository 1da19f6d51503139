//! Machine code that an earlier process compiled, a file for each key.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::checksum::checksum;

/// Machine code of ours is far shorter.
const MOST_BYTES: u64 = 16 << 20;

/// Sizes are compiled into kernels, so each shape adds some.
const MOST_FILES: usize = 4000;

/// What a machine need not compile again, if it has a folder to keep it in.
#[derive(Debug, Default)]
pub(super) struct KeptCode {
    folder: Option<PathBuf>,
}

impl KeptCode {
    pub(super) fn below(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    /// The code of this key. A file that is not as it was written says nothing.
    pub(super) fn of(&self, key: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(file(self.folder.as_ref()?, key)).ok()?.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        let (written, sum) = bytes.split_last_chunk()?;
        let right = checksum(written.iter().copied()) == u64::from_le_bytes(*sum);
        let code = written.strip_suffix(key.as_bytes())?.strip_suffix(b"\0")?;
        right.then(|| code.to_vec())
    }

    /// Keeps code for later processes. Without it the next one compiles again, so a disk that is full is no error.
    pub(super) fn keep(&self, key: &str, code: &[u8]) {
        let Some(folder) = &self.folder else { return };
        let mut bytes = [code, b"\0", key.as_bytes()].concat();
        bytes.extend(checksum(bytes.iter().copied()).to_le_bytes());
        let _ = fs::create_dir_all(folder);
        make_room(folder, MOST_FILES);
        // Others may be reading and writing: a whole file takes the place of a whole file.
        let path = file(folder, key);
        let begun = path.with_extension(format!("{}.new", std::process::id()));
        if fs::write(&begun, bytes).and_then(|()| fs::rename(&begun, path)).is_err() {
            let _ = fs::remove_file(begun);
        }
    }
}

/// The key is in the file too, so that two with one name take turns, and neither is taken for the other.
fn file(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("{:016x}.cubin", checksum(key.bytes())))
}

/// Deletes the oldest quarter of a folder that is full.
fn make_room(folder: &Path, most: usize) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    if paths.len() < most {
        return;
    }
    let written = |path: &PathBuf| fs::metadata(path).and_then(|of| of.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    paths.sort_by_cached_key(written);
    for path in &paths[..paths.len().div_ceil(4)] {
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tempfile::{TempDir, tempdir};

    fn kept_in(root: &TempDir) -> KeptCode {
        KeptCode::below(root.path().join("a device/kernels"))
    }

    fn files_of(root: &TempDir) -> Vec<PathBuf> {
        let entries = fs::read_dir(root.path().join("a device/kernels")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn what_one_process_compiled_the_next_one_has() {
        let root = tempdir().unwrap();
        let first = kept_in(&root);
        assert_eq!(first.of("add.cu WIDTH=1"), None);
        first.keep("add.cu WIDTH=1", b"\x7fELF one\0");
        first.keep("add.cu WIDTH=2", b"");
        let next = kept_in(&root);
        assert_eq!(next.of("add.cu WIDTH=1").as_deref(), Some(&b"\x7fELF one\0"[..]));
        assert_eq!(next.of("add.cu WIDTH=2").as_deref(), Some(&b""[..]));
        assert_eq!(next.of("add.cu WIDTH=3"), None);
        next.keep("add.cu WIDTH=1", b"newer");
        assert_eq!(first.of("add.cu WIDTH=1").as_deref(), Some(&b"newer"[..]));
        assert_eq!(files_of(&root).len(), 2, "nothing is left of writing");
        KeptCode::default().keep("add.cu", b"code");
        assert_eq!(KeptCode::default().of("add.cu"), None);
    }

    #[test]
    fn a_file_that_was_cut_or_changed_says_nothing() {
        let root = tempdir().unwrap();
        let kept = kept_in(&root);
        kept.keep("add.cu", b"\x7fELF code");
        let path = files_of(&root).remove(0);
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(kept.of("add.cu"), None, "cut at {cut}");
            let mut changed = whole.clone();
            changed[cut] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert_eq!(kept.of("add.cu"), None, "changed at {cut}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(kept.of("add.cu").as_deref(), Some(&b"\x7fELF code"[..]));
        // The file of another key, in this one's place.
        kept.keep("sub.cu", b"\x7fELF other");
        let other = files_of(&root).into_iter().find(|file| *file != path).unwrap();
        fs::rename(other, &path).unwrap();
        assert_eq!(kept.of("add.cu"), None);
    }

    #[test]
    fn a_full_folder_loses_its_oldest_files() {
        let root = tempdir().unwrap();
        let path = |index: u64| root.path().join(index.to_string());
        for index in 0..8 {
            let file = File::create(path(index)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - index)).unwrap();
        }
        make_room(root.path(), 9);
        assert!((0..8).all(|index| path(index).exists()));
        make_room(root.path(), 8);
        assert!((0..6).all(|index| path(index).exists()) && !path(6).exists() && !path(7).exists());
    }
}
