//! Where what was found out about a device outlives a run.

use std::path::PathBuf;

/// A folder of ours in the user's cache; none where the system has no place for it.
pub fn folder(name: &str) -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache")))?;
    Some(base.join("calorimeter").join(name))
}
