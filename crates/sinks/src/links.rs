//! Relative links from a page to the files of a run.

use std::path::{Component, Path, PathBuf};

/// Relative path from the directory of a page to the directory of a run.
pub(crate) struct Way {
    /// Directory of the run, and its URL relative to the page; `None` if either directory does not exist.
    found: Option<(PathBuf, String)>,
}

impl Way {
    pub(crate) fn from_to(page: &Path, run: &Path) -> Self {
        let found = page.canonicalize().and_then(|page| Ok((page, run.canonicalize()?))).ok();
        Self { found: found.map(|(page, run)| (run.clone(), folder(&relative(&page, &run)))) }
    }

    /// URL of a file in the run's directory, if it exists. The name comes from a record and must not lead out of the
    /// directory.
    pub(crate) fn to(&self, name: &Path) -> Option<String> {
        let (run, way) = self.found.as_ref()?;
        let inside = name.components().all(|part| matches!(part, Component::Normal(_)));
        (inside && run.join(name).is_file()).then(|| format!("{way}{}", encoded(name)))
    }
}

/// Relative path between two canonical paths.
pub(crate) fn relative(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// URL of a directory, with a trailing slash unless empty.
fn folder(way: &Path) -> String {
    if way.as_os_str().is_empty() { String::new() } else { format!("{}/", encoded(way)) }
}

/// Percent-encodes a path for use in a URL, including colons, so that no part becomes a scheme.
pub(crate) fn encoded(path: &Path) -> String {
    let parts: Vec<String> = path.components().map(encoded_part).collect();
    parts.join("/")
}

fn encoded_part(part: Component<'_>) -> String {
    let bytes = part.as_os_str().as_encoded_bytes().iter();
    bytes
        .map(|&byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_run_are_found_from_wherever_the_page_lies() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        std::fs::create_dir_all(run.join("traces")).unwrap();
        std::fs::create_dir_all(dir.path().join("pages/new")).unwrap();
        let odd = "javascript:a b#?%\"<.json";
        std::fs::write(run.join("traces").join(odd), "{}").unwrap();
        let trace = Path::new("traces").join(odd);
        let name = "traces/javascript%3Aa%20b%23%3F%25%22%3C.json";
        for (page, way) in [("run", ""), ("", "run/"), ("pages/new", "../../run/"), ("run/traces", "../")] {
            let way_there = Way::from_to(&dir.path().join(page), &run);
            assert_eq!(way_there.to(&trace), Some(format!("{way}{name}")), "{page}");
        }
    }

    #[test]
    fn no_name_leads_out_of_the_run_and_what_is_not_there_has_no_address() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        std::fs::create_dir_all(&run).unwrap();
        for file in ["secret", "run/there"] {
            std::fs::write(dir.path().join(file), "x").unwrap();
        }
        let way = Way::from_to(dir.path(), &run);
        assert_eq!(way.to(Path::new("there")).as_deref(), Some("run/there"));
        let absolute = dir.path().join("secret");
        for name in [Path::new("../secret"), &absolute, Path::new("./there"), Path::new("not-there"), Path::new("")] {
            assert_eq!(way.to(name), None, "{name:?}");
        }
        assert_eq!(Way::from_to(dir.path(), &dir.path().join("gone")).to(Path::new("there")), None);
    }
}
