//! Where what was found out about a device outlives a run.

use crate::tell::tell;
use calorimeter_case::read_text;
use calorimeter_sinks::atomic;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Display;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A folder of ours in the user's cache; none where the system has no place for it, or where others may write to it.
pub fn folder(name: &str) -> Option<PathBuf> {
    // A relative one would be in the working directory; its specification says to pass it over.
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let ours = base.join("calorimeter");
    let folder = ours.join(name);
    let open = [&ours, &folder].into_iter().find_map(|folder| Some((folder, open_to_others(folder)?)));
    let Some((path, why)) = open else { return Some(folder) };
    not_used(path, why);
    None
}

/// Says once why something that was kept is not used.
pub fn not_used(path: &Path, why: impl Display) {
    static TOLD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if !told.iter().any(|known| known == path) {
        tell!("warning: {} is not used, because {why}", path.display());
        told.push(path.to_owned());
    }
}

/// Why a folder or a file cannot be trusted: whoever may write to it could have written what is read from it. A group may, where
/// its user's `umask` says so.
pub fn open_to_others(path: &Path) -> Option<&'static str> {
    let found = std::fs::metadata(path).ok()?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Some("it belongs to another user");
    }
    (found.mode() & 0o002 != 0).then_some("everybody may write to it: `chmod o-w` it, and delete what is in it")
}

/// A case's id or a device's identity as the name of a file or folder.
pub fn file_name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || "._-#".contains(c) { c } else { '_' }).collect()
}

/// A file of ours is far shorter.
const MOST_BYTES: u64 = 16 << 20;

/// What was kept, if anything was.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let told = |why: &dyn Display| format!("{} cannot be read: {why}", path.display());
    if let Some(why) = open_to_others(path) {
        return Err(format!("{} is not trusted: {why}", path.display()));
    }
    match read_text(path, MOST_BYTES) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| told(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(told(&error)),
    }
}

/// Keeps it for later runs. Another process may be writing at this moment: a whole file takes the place of a whole file.
/// Without it the next run measures again, and is told why.
pub fn keep(path: &Path, what: &impl Serialize) {
    let written = serde_json::to_vec_pretty(what).map_err(|error| error.to_string());
    if let Err(error) = written.and_then(|bytes| atomic::write(path, &bytes).map_err(|error| error.with_causes())) {
        tell!("warning: not kept for later runs: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_that_others_may_write_to_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |mode| std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
        for (bits, trusted) in [(0o700, true), (0o755, true), (0o775, true), (0o777, false), (0o1777, false)] {
            mode(bits);
            assert_eq!(open_to_others(folder.path()).is_none(), trusted, "{bits:o}");
        }
        assert_eq!(open_to_others(&folder.path().join("not there yet")), None);
    }
}
