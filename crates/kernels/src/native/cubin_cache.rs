//! On-disk cache of compiled machine code, one file per key.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::checksum::checksum;

/// Size limit of a cached cubin; the cubins of this crate are far smaller.
const MAX_CUBIN_BYTES: u64 = 16 << 20;

/// Limit on cached files. Sizes are compiled into kernels, so every shape adds some.
const MAX_FILES: usize = 4000;

/// Cubin cache; disabled without a folder.
#[derive(Debug, Default)]
pub(super) struct CubinCache {
    folder: Option<PathBuf>,
}

impl CubinCache {
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder: Some(folder) }
    }

    /// Returns the code of a key; corrupt files count as missing.
    pub(super) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(cubin_path(self.folder.as_ref()?, key)).ok()?.take(MAX_CUBIN_BYTES).read_to_end(&mut bytes).ok()?;
        let (written, sum) = bytes.split_last_chunk()?;
        let is_valid = checksum(written.iter().copied()) == u64::from_le_bytes(*sum);
        let code = written.strip_suffix(key.as_bytes())?.strip_suffix(b"\0")?;
        is_valid.then(|| code.to_vec())
    }

    /// Stores code for later processes. Errors are ignored: the next process compiles again.
    pub(super) fn insert(&self, key: &str, code: &[u8]) {
        let Some(folder) = &self.folder else { return };
        let mut bytes = [code, b"\0", key.as_bytes()].concat();
        bytes.extend(checksum(bytes.iter().copied()).to_le_bytes());
        let _ = fs::create_dir_all(folder);
        evict_oldest(folder, MAX_FILES);
        // Other processes may access the cache concurrently: files are replaced atomically.
        let path = cubin_path(folder, key);
        let temporary = path.with_extension(format!("{}.new", std::process::id()));
        if fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path)).is_err() {
            let _ = fs::remove_file(temporary);
        }
    }
}

/// Path of a key. The file also contains the key, so that keys with equal hashes overwrite each other but are never
/// confused.
fn cubin_path(folder: &Path, key: &str) -> PathBuf {
    folder.join(format!("{:016x}.cubin", checksum(key.bytes())))
}

/// Deletes the oldest quarter of a full folder.
fn evict_oldest(folder: &Path, max_files: usize) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    if paths.len() < max_files {
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

    fn cache_in(root: &TempDir) -> CubinCache {
        CubinCache::in_folder(root.path().join("a device/kernels"))
    }

    fn files_of(root: &TempDir) -> Vec<PathBuf> {
        let entries = fs::read_dir(root.path().join("a device/kernels")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    #[test]
    fn cubins_persist_across_processes() {
        let root = tempdir().unwrap();
        let first = cache_in(&root);
        assert_eq!(first.get("add.cu WIDTH=1"), None);
        first.insert("add.cu WIDTH=1", b"\x7fELF one\0");
        first.insert("add.cu WIDTH=2", b"");
        let next = cache_in(&root);
        assert_eq!(next.get("add.cu WIDTH=1").as_deref(), Some(&b"\x7fELF one\0"[..]));
        assert_eq!(next.get("add.cu WIDTH=2").as_deref(), Some(&b""[..]));
        assert_eq!(next.get("add.cu WIDTH=3"), None);
        next.insert("add.cu WIDTH=1", b"newer");
        assert_eq!(first.get("add.cu WIDTH=1").as_deref(), Some(&b"newer"[..]));
        assert_eq!(files_of(&root).len(), 2, "no temporary files remain");
        CubinCache::default().insert("add.cu", b"code");
        assert_eq!(CubinCache::default().get("add.cu"), None);
    }

    #[test]
    fn corrupt_files_are_ignored() {
        let root = tempdir().unwrap();
        let kept = cache_in(&root);
        kept.insert("add.cu", b"\x7fELF code");
        let path = files_of(&root).remove(0);
        let whole = fs::read(&path).unwrap();
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(kept.get("add.cu"), None, "truncated at {length}");
            let mut changed = whole.clone();
            changed[length] ^= 1;
            fs::write(&path, &changed).unwrap();
            assert_eq!(kept.get("add.cu"), None, "changed at {length}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(kept.get("add.cu").as_deref(), Some(&b"\x7fELF code"[..]));
        // A file of another key under this name.
        kept.insert("sub.cu", b"\x7fELF other");
        let other = files_of(&root).into_iter().find(|file| *file != path).unwrap();
        fs::rename(other, &path).unwrap();
        assert_eq!(kept.get("add.cu"), None);
    }

    #[test]
    fn full_folder_evicts_oldest_files() {
        let root = tempdir().unwrap();
        let path = |index: u64| root.path().join(index.to_string());
        for index in 0..8 {
            let file = File::create(path(index)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(100 - index)).unwrap();
        }
        evict_oldest(root.path(), 9);
        assert!((0..8).all(|index| path(index).exists()));
        evict_oldest(root.path(), 8);
        assert!((0..6).all(|index| path(index).exists()) && !path(6).exists() && !path(7).exists());
    }
}
