//! Per-user cache directory: facts about devices that later runs reuse.

use crate::{atomic, log_line};
use calorimeter_case::read_text;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::Display;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Returns a directory of this program in the user's cache. `None` if the system defines no cache directory, or if
/// other users may write to it.
pub fn cache_dir(name: &str) -> Option<PathBuf> {
    // The XDG specification says to ignore relative paths; they would resolve against the working directory.
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let root = base.join("calorimeter");
    let folder = root.join(name);
    let open = [&root, &folder].into_iter().find_map(|folder| Some((folder, untrusted_reason(folder)?)));
    let Some((path, why)) = open else { return Some(folder) };
    warn_ignored(path, why);
    None
}

/// Warns once per path that a cached file or directory is ignored.
pub fn warn_ignored(path: &Path, why: impl Display) {
    static WARNED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut warned = WARNED.lock().unwrap_or_else(PoisonError::into_inner);
    if !warned.iter().any(|known| known == path) {
        log_line!("warning: ignoring {}: {why}", path.display());
        warned.push(path.to_owned());
    }
}

/// Returns the reason why a file or directory cannot be trusted: another user may have written its content. Write
/// access of the group is allowed, because some `umask` settings grant it by default.
pub fn untrusted_reason(path: &Path) -> Option<&'static str> {
    let found = std::fs::metadata(path).ok()?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Some("it is owned by another user");
    }
    (found.mode() & 0o002 != 0).then_some("it is world-writable: run `chmod o-w` on it and delete its content")
}

/// Converts a case id or a device identity to a valid file name.
pub fn file_name(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || "._-#".contains(c) { c } else { '_' }).collect()
}

/// Maximum size of a cached JSON file; files of this program are far smaller.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// Reads a cached JSON file; `None` if it does not exist.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let unreadable = |why: &dyn Display| format!("cannot read {}: {why}", path.display());
    if let Some(why) = untrusted_reason(path) {
        return Err(format!("{} is not trusted: {why}", path.display()));
    }
    match read_text(path, MAX_FILE_BYTES) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| unreadable(&error)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Writes a value as JSON for later runs. The file is replaced atomically, because another process may write it
/// concurrently. A failure is only a warning: the next run measures again.
pub fn write(path: &Path, value: &impl Serialize) {
    let bytes = serde_json::to_vec_pretty(value).map_err(|error| error.to_string());
    if let Err(error) = bytes.and_then(|bytes| atomic::write(path, &bytes).map_err(|error| error.with_causes())) {
        log_line!("warning: cannot save results for later runs: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn world_writable_folder_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |mode| std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(mode)).unwrap();
        for (bits, trusted) in [(0o700, true), (0o755, true), (0o775, true), (0o777, false), (0o1777, false)] {
            mode(bits);
            assert_eq!(untrusted_reason(folder.path()).is_none(), trusted, "{bits:o}");
        }
        assert_eq!(untrusted_reason(&folder.path().join("not there yet")), None);
    }
}
