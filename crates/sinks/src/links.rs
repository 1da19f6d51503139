//! Relative links from a page to the files of a run.

use std::path::{Component, Path, PathBuf};

/// Relative path from the directory of a page to the directory of a run.
pub(crate) struct RunLinks {
    /// Directory of the run, and its URL relative to the page; `None` if either directory does not exist.
    target: Option<(PathBuf, String)>,
}

impl RunLinks {
    pub(crate) fn new(page: &Path, run: &Path) -> Self {
        let found = page.canonicalize().and_then(|page| Ok((page, run.canonicalize()?))).ok();
        Self { target: found.map(|(page, run)| (run.clone(), directory_url(&relative_path(&page, &run)))) }
    }

    /// URL of a file in the run's directory, if it exists. The name comes from a record and must not lead out of the
    /// directory.
    pub(crate) fn url(&self, name: &Path) -> Option<String> {
        let (run, way) = self.target.as_ref()?;
        let inside = name.components().all(|part| matches!(part, Component::Normal(_)));
        (inside && run.join(name).is_file()).then(|| format!("{way}{}", percent_encode(name)))
    }
}

/// Relative path between two canonical paths.
pub(crate) fn relative_path(from: &Path, to: &Path) -> PathBuf {
    let shared = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    up.chain(to.components().skip(shared)).collect()
}

/// URL of a directory, with a trailing slash unless empty.
fn directory_url(way: &Path) -> String {
    if way.as_os_str().is_empty() { String::new() } else { format!("{}/", percent_encode(way)) }
}

/// Percent-encodes a path for use in a URL, including colons, so that no part becomes a scheme.
pub(crate) fn percent_encode(path: &Path) -> String {
    let parts: Vec<String> = path.components().map(percent_encode_part).collect();
    parts.join("/")
}

fn percent_encode_part(part: Component<'_>) -> String {
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
    fn links_are_relative_to_the_page() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        std::fs::create_dir_all(run.join("traces")).unwrap();
        std::fs::create_dir_all(dir.path().join("pages/new")).unwrap();
        let odd = "javascript:a b#?%\"<.json";
        std::fs::write(run.join("traces").join(odd), "{}").unwrap();
        let trace = Path::new("traces").join(odd);
        let name = "traces/javascript%3Aa%20b%23%3F%25%22%3C.json";
        for (page, way) in [("run", ""), ("", "run/"), ("pages/new", "../../run/"), ("run/traces", "../")] {
            let way_there = RunLinks::new(&dir.path().join(page), &run);
            assert_eq!(way_there.url(&trace), Some(format!("{way}{name}")), "{page}");
        }
    }

    #[test]
    fn links_never_leave_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("run");
        std::fs::create_dir_all(&run).unwrap();
        for file in ["secret", "run/there"] {
            std::fs::write(dir.path().join(file), "x").unwrap();
        }
        let way = RunLinks::new(dir.path(), &run);
        assert_eq!(way.url(Path::new("there")).as_deref(), Some("run/there"));
        let absolute = dir.path().join("secret");
        for name in [Path::new("../secret"), &absolute, Path::new("./there"), Path::new("not-there"), Path::new("")] {
            assert_eq!(way.url(name), None, "{name:?}");
        }
        assert_eq!(RunLinks::new(dir.path(), &dir.path().join("gone")).url(Path::new("there")), None);
    }
}
