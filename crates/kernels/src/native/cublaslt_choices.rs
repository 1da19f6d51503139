//! Which algorithm of cuBLASLt was the fastest for a product: tried once, known to the process from then on, and to later
//! processes where there is a file.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use super::checksum::checksum;

/// An algorithm as cuBLASLt describes it to itself, which the same version understands in any process.
pub(super) type Algorithm = [u64; 8];

/// A file of ours is far shorter.
const MOST_BYTES: u64 = 16 << 20;

/// The choices that a machine knows.
#[derive(Debug, Default)]
pub(super) struct Choices {
    file: Option<PathBuf>,
    known: Mutex<HashMap<String, Choice>>,
}

/// What was chosen for a product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) algorithm: Algorithm,
    /// Whether an earlier process tried it.
    pub(super) earlier: bool,
}

impl Choices {
    /// Those that a file keeps. A line that is not as it was written says nothing.
    pub(super) fn open(file: PathBuf) -> Self {
        let mut bytes = Vec::new();
        let read = File::open(&file).and_then(|open| open.take(MOST_BYTES).read_to_end(&mut bytes));
        let text = String::from_utf8_lossy(&bytes);
        let known = if read.is_ok() { text.lines().filter_map(product_and_choice).collect() } else { HashMap::new() };
        Self { file: Some(file), known: Mutex::new(known) }
    }

    pub(super) fn of(&self, product: &str) -> Option<Choice> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(product).copied()
    }

    /// Takes a choice that was tried just now.
    pub(super) fn keep(&self, product: &str, algorithm: Algorithm) {
        let choice = Choice { algorithm, earlier: false };
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(product.to_owned(), choice);
        if let Some(file) = &self.file {
            // Without it the next process tries again.
            let _ = file.parent().map_or(Ok(()), fs::create_dir_all);
            let appended = OpenOptions::new().create(true).append(true).open(file);
            // Others may be appending, too: a line is written at once.
            let _ = appended.and_then(|mut file| file.write_all(line(product, algorithm).as_bytes()));
        }
    }
}

/// The product, the eight words and a sum over both, so that what was cut or changed is found out. It begins with the end of
/// a line that may have been cut.
fn line(product: &str, algorithm: Algorithm) -> String {
    let words: String = algorithm.iter().map(|word| format!("{word:016x}")).collect();
    format!("\n{product}\t{words}\t{:016x}\n", sum(product, &words))
}

fn product_and_choice(line: &str) -> Option<(String, Choice)> {
    let mut parts = line.split('\t');
    let (product, words, written) = (parts.next()?, parts.next()?, parts.next()?);
    let right = parts.next().is_none() && u64::from_str_radix(written, 16) == Ok(sum(product, words));
    if !right || words.len() != 8 * 16 || !words.is_ascii() {
        return None;
    }
    let mut algorithm = Algorithm::default();
    for (at, word) in algorithm.iter_mut().enumerate() {
        *word = u64::from_str_radix(&words[16 * at..16 * (at + 1)], 16).ok()?;
    }
    Some((product.to_owned(), Choice { algorithm, earlier: true }))
}

fn sum(product: &str, words: &str) -> u64 {
    checksum(product.bytes().chain([b'\t']).chain(words.bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// A file in a folder that is made when the file is, and is gone with the first of these.
    fn scratch() -> (TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a device/cublaslt.txt");
        (root, file)
    }

    #[test]
    fn what_one_process_tried_the_next_one_knows() {
        let (_root, file) = scratch();
        let first = Choices::open(file.clone());
        assert_eq!(first.of("bf16 m1-k2-n3"), None);
        first.keep("bf16 m1-k2-n3", [1, 2, 3, 4, 5, 6, 7, u64::MAX]);
        first.keep("TF32 m1-k2-n3", [9; 8]);
        assert_eq!(first.of("TF32 m1-k2-n3"), Some(Choice { algorithm: [9; 8], earlier: false }));
        let next = Choices::open(file.clone());
        let earlier = |algorithm| Some(Choice { algorithm, earlier: true });
        assert_eq!(next.of("bf16 m1-k2-n3"), earlier([1, 2, 3, 4, 5, 6, 7, u64::MAX]));
        next.keep("TF32 m1-k2-n3", [8; 8]);
        assert_eq!(Choices::open(file.clone()).of("TF32 m1-k2-n3"), earlier([8; 8]));
        let alone = Choices::default();
        alone.keep("bf16", [1; 8]);
        assert!(alone.of("bf16").is_some());
    }

    #[test]
    fn a_broken_file_costs_a_trial_and_nothing_else() {
        let (root, file) = scratch();
        let choices = Choices::open(file.clone());
        choices.keep("a", [1; 8]);
        let whole = fs::read(&file).unwrap();
        for at in 0..whole.len() {
            let known = |bytes: &[u8]| {
                fs::write(&file, bytes).unwrap();
                Choices::open(file.clone()).of("a").map(|choice| choice.algorithm)
            };
            let mut other = whole.clone();
            other[at] ^= 1;
            assert!(known(&other).is_none_or(|algorithm| algorithm == [1; 8]), "byte {at} changed");
            assert!(known(&whole[..at]).is_none_or(|algorithm| algorithm == [1; 8]), "cut at {at}");
            // What is appended to a file that was cut is whole again.
            Choices::open(file.clone()).keep("b", [2; 8]);
            assert_eq!(Choices::open(file.clone()).of("b").map(|choice| choice.algorithm), Some([2; 8]));
        }
        fs::write(&file, [0xff; 1000]).unwrap();
        assert_eq!(Choices::open(file.clone()).of("a"), None);
        assert_eq!(Choices::open(root.path().to_path_buf()).of("a"), None, "a folder in its place");
    }
}
