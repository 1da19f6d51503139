//! Files below `/sys` and `/proc`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Trimmed content of a file, if it is readable and not empty.
pub(super) fn read_text(path: impl AsRef<Path>) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// Number in a file.
pub(super) fn read_number<T: FromStr>(path: impl AsRef<Path>) -> Option<T> {
    read_text(path)?.parse().ok()
}

/// Entries of a folder named `prefix` plus a number, in numeric order.
pub(super) fn numbered_entries(folder: impl AsRef<Path>, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return vec![] };
    let number = |path: &Path| path.file_name()?.to_str()?.strip_prefix(prefix)?.parse::<u32>().ok();
    let mut found: Vec<(u32, PathBuf)> =
        entries.flatten().filter_map(|entry| Some((number(&entry.path())?, entry.path()))).collect();
    found.sort_unstable();
    found.into_iter().map(|(_, path)| path).collect()
}
