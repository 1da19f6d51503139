//! `index.html`: page in the directory of a run with links to all of its files.
//!
//! The page embeds the data as JSON, so that files written later can be added without reading the run again.

use std::fs;
use std::path::{Path, PathBuf};

use calorimeter_case::record::{Record, Status};
use serde::{Deserialize, Serialize};

use crate::journal::{JOURNAL_FILE, count_by_status};
use crate::links::{percent_encode, relative_path};
use crate::{SinkError, SinkInput, atomic};

/// File name of the page in the directory of a run.
pub const INDEX_FILE: &str = "index.html";

/// Data of the page.
#[derive(Serialize, Deserialize)]
struct IndexData {
    run: String,
    started: String,
    counts: Vec<(Status, u64)>,
    files: Vec<LinkedFile>,
}

/// File of a run.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct LinkedFile {
    group: IndexSection,
    /// Path relative to the page.
    way: PathBuf,
    /// Description, or the case that the file belongs to.
    said: String,
}

/// Section of the page, in order.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum IndexSection {
    /// Reports and plots written after the run.
    Report,
    /// Journal and tables derived from it.
    Result,
    Trace,
    Memory,
}

impl IndexSection {
    const ALL: [Self; 4] = [Self::Report, Self::Result, Self::Trace, Self::Memory];

    fn title(self) -> &'static str {
        match self {
            Self::Report => "Reports",
            Self::Result => "Results",
            Self::Trace => "Traces",
            Self::Memory => "Memory",
        }
    }
}

/// Descriptions of known files; files of other formats have self-explanatory names.
const FILE_DESCRIPTIONS: [(&str, &str); 3] = [
    (JOURNAL_FILE, "all records; every other file is derived from it"),
    ("results.csv", "table of all cases"),
    ("results.parquet", "typed table of all cases, including windows"),
];

/// Writes the page of a run with these derived files. Files that were added to an earlier page remain.
pub(crate) fn write(run: &SinkInput, derived: &[PathBuf]) -> Result<PathBuf, SinkError> {
    let path = run.dir.join(INDEX_FILE);
    let dir = run.dir.canonicalize().map_err(|cause| SinkError::write(&path, cause))?;
    let mut files: Vec<LinkedFile> = read_index(&path)?.into_iter().flat_map(|known| known.files).collect();
    files.retain(|file| file.group == IndexSection::Report && dir.join(&file.way).is_file());
    let journal = run.dir.join(JOURNAL_FILE);
    files.extend([journal].iter().chain(derived).filter_map(|file| link_to(&dir, file, IndexSection::Result)));
    files.extend(run.records.iter().flat_map(|record| case_links(&dir, record)));
    let index = IndexData {
        run: run.header.run_id.clone(),
        started: run.header.started.clone(),
        counts: count_by_status(&run.records).into_iter().collect(),
        files,
    };
    atomic::write(&path, index.html(&path)?.as_bytes())?;
    Ok(path)
}

/// Adds files to the page of a run and returns its path; `None` if the directory has no page.
pub fn add(dir: &Path, made: &[PathBuf]) -> Result<Option<PathBuf>, SinkError> {
    let path = dir.join(INDEX_FILE);
    let Some(mut index) = read_index(&path)? else { return Ok(None) };
    let dir = dir.canonicalize().map_err(|cause| SinkError::write(&path, cause))?;
    for file in made.iter().filter_map(|file| link_to(&dir, file, IndexSection::Report)) {
        if !index.files.contains(&file) {
            index.files.push(file);
        }
    }
    atomic::write(&path, index.html(&path)?.as_bytes())?;
    Ok(Some(path))
}

const BEFORE_DATA: &str = "<script type=\"application/json\" id=\"files\">";
const AFTER_DATA: &str = "</script>";

/// Reads the data of an existing page.
fn read_index(path: &Path) -> Result<Option<IndexData>, SinkError> {
    if !path.is_file() {
        return Ok(None);
    }
    let html = fs::read_to_string(path).map_err(|cause| SinkError::Read { path: path.to_owned(), cause })?;
    let data = html.split_once(BEFORE_DATA).and_then(|(_, rest)| Some(rest.split_once(AFTER_DATA)?.0));
    let index = data.and_then(|data| serde_json::from_str(data).ok());
    index.map(Some).ok_or_else(|| SinkError::NotOurIndex { path: path.to_owned() })
}

/// Link to a file, if it exists.
fn link_to(dir: &Path, file: &Path, group: IndexSection) -> Option<LinkedFile> {
    let file = file.canonicalize().ok().filter(|file| file.is_file())?;
    let way = relative_path(dir, &file);
    let said = FILE_DESCRIPTIONS.iter().find(|(name, _)| way == Path::new(name)).map_or("", |(_, said)| said);
    Some(LinkedFile { group, way, said: said.into() })
}

/// Links to the trace and the memory files of a case.
fn case_links(dir: &Path, record: &Record) -> Vec<LinkedFile> {
    let inside = |file: PathBuf, group| {
        // The name comes from a record, which must not lead out of the directory.
        let link =
            link_to(dir, &file, group).filter(|link| dir.join(&link.way).starts_with(dir) && !link.is_outside())?;
        Some(LinkedFile { said: record.case.id.to_string(), ..link })
    };
    let trace = record.profile.trace.iter().filter_map(|trace| inside(dir.join(trace), IndexSection::Trace));
    let memory = record.footprint.memory_profile.iter().flat_map(|folder| {
        let mut files: Vec<PathBuf> =
            fs::read_dir(dir.join(folder)).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort_unstable();
        files.into_iter().filter_map(|file| inside(file, IndexSection::Memory))
    });
    trace.chain(memory).collect()
}

/// Maximum length of a list that is not collapsed.
const MAX_EXPANDED_LEN: usize = 40;

impl IndexData {
    fn html(&self, path: &Path) -> Result<String, SinkError> {
        let data = serde_json::to_string(self).map_err(|cause| SinkError::format(path, cause))?;
        // These characters occur only in strings, where the escapes are equivalent; unescaped they could end the script
        // element.
        let data = data.replace('<', r"\u003c").replace('>', r"\u003e").replace('&', r"\u0026");
        let counts: Vec<String> = self.counts.iter().map(|(status, count)| format!("{count} {status}")).collect();
        let groups: String = IndexSection::ALL.into_iter().map(|group| self.section_html(group)).collect();
        let (run, started) = (escape_html(&self.run), escape_html(&self.started));
        Ok(format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <title>Calorimeter run {run}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <h1>Calorimeter run {run}</h1>\n<p>Started {started}. {} cases: {}.</p>\n<main>\n{groups}</main>\n\
             {BEFORE_DATA}{data}{AFTER_DATA}\n</body>\n</html>\n",
            self.counts.iter().map(|(_, count)| count).sum::<u64>(),
            counts.join(", "),
        ))
    }

    fn section_html(&self, group: IndexSection) -> String {
        let files: Vec<String> = self.files.iter().filter(|file| file.group == group).map(LinkedFile::html).collect();
        let list = format!("<ul>\n{}</ul>\n", files.concat());
        match files.len() {
            0 => String::new(),
            1..=MAX_EXPANDED_LEN => format!("<h2>{}</h2>\n{list}", group.title()),
            many => format!("<h2>{}</h2>\n<details><summary>{many} files</summary>\n{list}</details>\n", group.title()),
        }
    }
}

impl LinkedFile {
    fn is_outside(&self) -> bool {
        self.way.starts_with("..") || self.way.is_absolute()
    }

    fn html(&self) -> String {
        let (address, name, said) =
            (percent_encode(&self.way), escape_html(&self.way.to_string_lossy()), escape_html(&self.said));
        let said = if said.is_empty() { said } else { format!(" <span>{said}</span>") };
        format!("<li><a href=\"{address}\">{name}</a>{said}</li>\n")
    }
}

const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-bottom: .25rem; }
ul { margin: .25rem 0; padding-left: 1.25rem; } li span { opacity: .75; margin-left: .5rem; }
";

/// Escapes text for HTML.
fn escape_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Header;
    use crate::{Case, SeriesStore};

    fn run(dir: &Path) -> SinkInput {
        let mut record = Record::new(Case { id: "a/<b>".into(), ..Case::default() }, Status::Ok);
        record.profile.trace = Some("traces/a.json".into());
        record.footprint.memory_profile = Some("memory/a".into());
        let mut hostile = Record::new(Case { id: "c".into(), ..Case::default() }, Status::Failed);
        hostile.profile.trace = Some("../secret".into());
        let header = Header { run_id: "r\"1</script>".into(), started: "now".into(), ..Header::default() };
        let records = vec![record, hostile];
        SinkInput { dir: dir.into(), output_dir: dir.into(), header, records, stored: SeriesStore::default() }
    }

    #[test]
    fn index_links_every_file_of_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        let odd = "odd <name>&\"#%.csv";
        let files =
            ["secret", "run/journal.jsonl", "run/traces/a.json", "run/memory/a/memory.html", "run/report.html", odd];
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let outside = folder.path().join(odd);
        let path = write(&run(&dir), &[outside.clone(), dir.join("not-there.csv")]).unwrap();
        let html = fs::read_to_string(&path).unwrap();
        let addresses: Vec<&str> = html.split("href=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect();
        let expected =
            ["journal.jsonl", "../odd%20%3Cname%3E%26%22%23%25.csv", "traces/a.json", "memory/a/memory.html"];
        assert_eq!(addresses, expected);
        assert!(html.contains("<h1>Calorimeter run r&quot;1&lt;/script&gt;</h1>"), "{html}");
        assert!(html.contains("<span>a/&lt;b&gt;</span>") && html.contains("2 cases: 1 ok, 1 failed"), "{html}");
        assert_eq!(html.matches("</script>").count(), 1);

        assert_eq!(add(&dir, &[dir.join("report.html")]).unwrap().as_deref(), Some(path.as_path()));
        add(&dir, &[dir.join("report.html")]).unwrap();
        // Added files remain when the run is rendered again.
        write(&run(&dir), &[outside]).unwrap();
        let html = fs::read_to_string(&path).unwrap();
        assert_eq!(html.matches("href=\"report.html\"").count(), 1, "{html}");
        assert_eq!(html.matches("href=").count(), 5);
    }

    #[test]
    fn foreign_pages_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(add(folder.path(), &[]).unwrap(), None);
        fs::write(folder.path().join(INDEX_FILE), "<h1>mine</h1>").unwrap();
        for error in [add(folder.path(), &[]).unwrap_err(), write(&run(folder.path()), &[]).unwrap_err()] {
            assert!(matches!(error, SinkError::NotOurIndex { .. }), "{error}");
        }
    }
}
