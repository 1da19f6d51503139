//! Cache of the fastest cuBLASLt algorithm per matmul: in memory for this process, and optionally in a file for later
//! ones.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use super::checksum::checksum;

/// Opaque algorithm descriptor of cuBLASLt, valid across processes with equal library versions.
pub(super) type AlgorithmWords = [u64; 8];

/// Limit on the file size; actual files are far smaller.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Algorithm cache of a device.
#[derive(Debug, Default)]
pub(super) struct AlgorithmCache {
    file: Option<PathBuf>,
    entries: Mutex<HashMap<String, CachedAlgorithm>>,
}

/// Cached algorithm of a matmul.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CachedAlgorithm {
    pub(super) algorithm: AlgorithmWords,
    /// True if it was read from the file.
    pub(super) from_file: bool,
}

impl AlgorithmCache {
    /// Reads the cache file; corrupt lines are ignored.
    pub(super) fn open(file: PathBuf) -> Self {
        let mut bytes = Vec::new();
        let read = File::open(&file).and_then(|open| open.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let known = if read.is_ok() { text.lines().filter_map(parse_line).collect() } else { HashMap::new() };
        Self { file: Some(file), entries: Mutex::new(known) }
    }

    pub(super) fn get(&self, product: &str) -> Option<CachedAlgorithm> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).get(product).copied()
    }

    /// Stores the result of a trial.
    pub(super) fn insert(&self, product: &str, algorithm: AlgorithmWords) {
        let choice = CachedAlgorithm { algorithm, from_file: false };
        self.entries.lock().unwrap_or_else(PoisonError::into_inner).insert(product.to_owned(), choice);
        if let Some(file) = &self.file {
            // Errors are ignored: the next process runs the trial again.
            let _ = file.parent().map_or(Ok(()), fs::create_dir_all);
            let appended = OpenOptions::new().create(true).append(true).open(file);
            // Other processes may append concurrently: each line is written by one call.
            let _ = appended.and_then(|mut file| file.write_all(format_line(product, algorithm).as_bytes()));
        }
    }
}

/// Formats a line: matmul, the eight words, and a checksum over both. The leading newline terminates a line that may
/// have been truncated.
fn format_line(product: &str, algorithm: AlgorithmWords) -> String {
    let words: String = algorithm.iter().map(|word| format!("{word:016x}")).collect();
    format!("\n{product}\t{words}\t{:016x}\n", line_checksum(product, &words))
}

fn parse_line(line: &str) -> Option<(String, CachedAlgorithm)> {
    let mut parts = line.split('\t');
    let (product, words, written) = (parts.next()?, parts.next()?, parts.next()?);
    let right = parts.next().is_none() && u64::from_str_radix(written, 16) == Ok(line_checksum(product, words));
    if !right || words.len() != 8 * 16 || !words.is_ascii() {
        return None;
    }
    let mut algorithm = AlgorithmWords::default();
    for (at, word) in algorithm.iter_mut().enumerate() {
        *word = u64::from_str_radix(&words[16 * at..16 * (at + 1)], 16).ok()?;
    }
    Some((product.to_owned(), CachedAlgorithm { algorithm, from_file: true }))
}

fn line_checksum(product: &str, words: &str) -> u64 {
    checksum(product.bytes().chain([b'\t']).chain(words.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// Returns the path of a file that does not exist yet, and its temporary folder.
    fn scratch() -> (TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a device/cublaslt.txt");
        (root, file)
    }

    #[test]
    fn algorithms_persist_across_processes() {
        let (_root, file) = scratch();
        let first = AlgorithmCache::open(file.clone());
        assert_eq!(first.get("bf16 m1-k2-n3"), None);
        first.insert("bf16 m1-k2-n3", [1, 2, 3, 4, 5, 6, 7, u64::MAX]);
        first.insert("TF32 m1-k2-n3", [9; 8]);
        assert_eq!(first.get("TF32 m1-k2-n3"), Some(CachedAlgorithm { algorithm: [9; 8], from_file: false }));
        let next = AlgorithmCache::open(file.clone());
        let earlier = |algorithm| Some(CachedAlgorithm { algorithm, from_file: true });
        assert_eq!(next.get("bf16 m1-k2-n3"), earlier([1, 2, 3, 4, 5, 6, 7, u64::MAX]));
        next.insert("TF32 m1-k2-n3", [8; 8]);
        assert_eq!(AlgorithmCache::open(file.clone()).get("TF32 m1-k2-n3"), earlier([8; 8]));
        let alone = AlgorithmCache::default();
        alone.insert("bf16", [1; 8]);
        assert!(alone.get("bf16").is_some());
    }

    #[test]
    fn corrupt_file_costs_only_a_new_trial() {
        let (root, file) = scratch();
        let choices = AlgorithmCache::open(file.clone());
        choices.insert("a", [1; 8]);
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let known = |bytes: &[u8]| {
                fs::write(&file, bytes).unwrap();
                AlgorithmCache::open(file.clone()).get("a").map(|choice| choice.algorithm)
            };
            let mut other = whole.clone();
            other[at] ^= 1;
            assert!(known(&other).is_none_or(|algorithm| algorithm == [1; 8]), "byte {at} changed");
            assert!(known(&whole[..at]).is_none_or(|algorithm| algorithm == [1; 8]), "truncated at {at}");
            // An entry appended to a truncated file is readable.
            AlgorithmCache::open(file.clone()).insert("b", [2; 8]);
            assert_eq!(AlgorithmCache::open(file.clone()).get("b").map(|choice| choice.algorithm), Some([2; 8]));
        }
        fs::write(&file, [0xff; 1000]).unwrap();
        assert_eq!(AlgorithmCache::open(file.clone()).get("a"), None);
        assert_eq!(AlgorithmCache::open(root.path().to_path_buf()).get("a"), None, "a folder instead of a file");
    }
}
