//! Validation of autotune decisions before a worker uses them: the tuner takes the candidate that a line names without
//! checking it.

use calorimeter_sinks::cache::{untrusted_reason, warn_ignored};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum size of a log file; files of the tuner are far smaller.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// True if everything below a folder is trusted; otherwise prints the reason.
pub(crate) fn is_trusted(folder: &Path) -> bool {
    match find_fault(folder) {
        None => true,
        Some((path, why)) => {
            warn_ignored(folder, format!("{}: {why}; delete it to tune again", path.display()));
            false
        }
    }
}

fn find_fault(folder: &Path) -> Option<(PathBuf, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter_map(|path| if path.is_dir() { fault_of_folder(path) } else { fault_of_file(path) }).next()
}

fn fault_of_folder(path: PathBuf) -> Option<(PathBuf, String)> {
    match untrusted_reason(&path) {
        Some(why) => Some((path, why.into())),
        None => find_fault(&path),
    }
}

pub(crate) fn fault_of_file(path: PathBuf) -> Option<(PathBuf, String)> {
    let fault = || {
        if let Some(why) = untrusted_reason(&path) {
            return Some(why.to_owned());
        }
        if path.extension().is_none_or(|end| end != "log") {
            return None;
        }
        let bytes = fs::metadata(&path).ok()?.len();
        if bytes > MAX_FILE_BYTES {
            return Some(format!("its {bytes} bytes exceed the maximum of {MAX_FILE_BYTES}"));
        }
        let text = fs::read(&path).ok()?;
        let mut lines = text.split(|&byte| byte == b'\n').enumerate();
        lines.find_map(|(at, line)| Some(format!("line {}: {}", at + 1, fault_of_line(line)?)))
    };
    fault().map(|why| (path.clone(), why))
}

/// Describes the fault of a decision, if any.
fn fault_of_line(line: &[u8]) -> Option<&'static str> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let Ok(entry) = serde_json::from_slice::<Value>(line) else { return Some("not an autotune decision") };
    let value = &entry["value"];
    let ran = |result: &Value| result["outcome"]["Ok"]["index"].as_u64();
    let results = value["results"].as_array().map_or(&[][..], Vec::as_slice);
    let fastest = value["fastest_index"].as_u64();
    let known = fastest.is_some() && results.iter().any(|result| ran(result) == fastest);
    (!known).then_some("selects a candidate that did not run")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_candidates_that_ran_are_accepted() {
        let line = |fastest: u64| {
            format!(
                "{{\"key\":{{}},\"value\":{{\"fastest_index\":{fastest},\"results\":[{{\"outcome\":{{\"Ok\":{{\"index\":5}}}}}},\
                 {{\"outcome\":{{\"Err\":{{\"index\":6}}}}}}]}}}}\n"
            )
        };
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a device");
        fs::create_dir_all(folder.join("autotune")).unwrap();
        let path = folder.join("autotune/matmul.json.log");
        for (text, fault) in [
            (line(5), None),
            (line(5) + &line(5), None),
            (line(5) + &line(6), Some("line 2: selects a candidate that did not run")),
            (line(99), Some("line 1: selects a candidate that did not run")),
            ("{\"half".into(), Some("line 1: not an autotune decision")),
        ] {
            fs::write(&path, &text).unwrap();
            assert_eq!(find_fault(&folder), fault.map(|why| (path.clone(), why.into())), "{text}");
            assert_eq!(is_trusted(&folder), fault.is_none());
        }
        fs::write(&path, line(5)).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(find_fault(&folder).is_some_and(|(_, why)| why.contains("world-writable")));
    }
}
