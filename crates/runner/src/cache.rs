//! Where what was found out about a device outlives a run.

use crate::tell::tell;
use calorimeter_sinks::atomic;
use serde::{Serialize, de::DeserializeOwned};
use std::path::{Path, PathBuf};

/// A folder of ours in the user's cache; none where the system has no place for it.
pub fn folder(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(base.join("calorimeter").join(name))
}

/// A case's id or a device's identity as the name of a file or folder.
pub fn file_name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || "._-#".contains(c) { c } else { '_' }).collect()
}

/// What was kept, if it can be read.
pub fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// Keeps it for later runs. Another process may be writing at this moment: a whole file takes the place of a whole file.
/// Without it the next run measures again, and is told why.
pub fn keep(path: &Path, what: &impl Serialize) {
    let written = serde_json::to_vec_pretty(what).map_err(|error| error.to_string());
    if let Err(error) = written.and_then(|bytes| atomic::write(path, &bytes).map_err(|error| error.with_causes())) {
        tell!("warning: not kept for later runs: {error}");
    }
}
