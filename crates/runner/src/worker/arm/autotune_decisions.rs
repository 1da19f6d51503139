//! Decisions of the autotuner, read from its cache files.

use calorimeter_case::Case;
use calorimeter_sinks::cache;
use calorimeter_zoo::Implementation;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Autotune decisions of a case as text, each with the fastest candidate.
///
/// Decisions for matmuls are found by size. Others are attributed by time: entries that appear while a case is primed
/// are stored under its name and reused in later runs.
pub(super) struct AutotuneDecisions {
    folder: PathBuf,
    /// Length of each file before priming.
    log_lengths: HashMap<PathBuf, u64>,
}

/// Decisions by case; stored next to the tuner's own files.
const DECISIONS_FILE: &str = "decisions.json";

impl AutotuneDecisions {
    /// Records the lengths of the tuner's files before a case is primed.
    pub(super) fn snapshot(folder: PathBuf) -> Self {
        let end = |file: PathBuf| fs::metadata(&file).ok().map(|about| (file, about.len()));
        Self { log_lengths: tuner_logs(&folder).filter_map(end).collect(), folder }
    }

    /// Returns the decisions of a case after it was primed.
    pub(super) fn collect(self, case: &Case, products: &[[u64; 3]], implementation: Implementation) -> Vec<String> {
        if matches!(implementation, Implementation::Native) {
            return Vec::new();
        }
        let mut new = Vec::new();
        for file in tuner_logs(&self.folder) {
            let known = self.log_lengths.get(&file).copied().unwrap_or(0);
            each_line(&file, known, |line| new.extend(parse_decision(line, &log_subject(&file))));
        }
        let path = self.folder.join(DECISIONS_FILE);
        let mut by_case: BTreeMap<String, Vec<String>> = cache::read(&path).ok().flatten().unwrap_or_default();
        let Case { workload, recipe, element, shape, .. } = case;
        let name = format!("{workload}/{recipe}/{implementation}/{element}/{shape}");
        if !new.is_empty() {
            let known = by_case.entry(name.clone()).or_default();
            known.extend(new);
            known.sort();
            known.dedup();
            cache::write(&path, &by_case);
        }
        let mut decisions = by_case.remove(&name).unwrap_or_default();
        decisions.extend(self.matmul_decisions(products, implementation));
        decisions.sort();
        decisions.dedup();
        decisions
    }

    /// Returns the decisions for matmuls of the given m, n and k.
    fn matmul_decisions(&self, products: &[[u64; 3]], implementation: Implementation) -> Vec<String> {
        let kind = match implementation {
            Implementation::Eager => "kernel-matmul",
            Implementation::Fused => "matmul",
            Implementation::Cube | Implementation::Native | Implementation::Other(_) => return Vec::new(),
        };
        // Lines are long and most concern other sizes: a substring search avoids parsing them.
        let hints: Vec<String> = products.iter().map(|[m, _, _]| format!("\"m\":{m},")).collect();
        let mut decisions = Vec::new();
        if hints.is_empty() {
            return decisions;
        }
        for file in tuner_logs(&self.folder).filter(|file| log_subject(file).contains(kind)) {
            each_line(&file, 0, |line| {
                let hinted = hints.iter().any(|hint| line.contains(hint));
                if hinted && matmul_sizes(line).is_some_and(|sides| products.contains(&sides)) {
                    decisions.extend(parse_decision(line, ""));
                }
            });
        }
        decisions
    }
}

/// The tuner's log files below a folder.
fn tuner_logs(folder: &Path) -> impl Iterator<Item = PathBuf> {
    files(folder).into_iter().filter(|file| file.extension().is_some_and(|end| end == "log"))
}

/// Maximum number of bytes read from the end of a file; the tuner appends recent decisions.
const MAX_LOG_BYTES: u64 = 64 << 20;

/// Calls `take` for each line from a position on. Unreadable lines and files are skipped.
fn each_line(file: &Path, from: u64, mut take: impl FnMut(&str)) {
    let opened = || {
        let mut file = File::open(file)?;
        let from = from.max(file.metadata()?.len().saturating_sub(MAX_LOG_BYTES));
        file.seek(SeekFrom::Start(from))?;
        std::io::Result::Ok(BufReader::new(file.take(MAX_LOG_BYTES)))
    };
    let Ok(mut reader) = opened() else { return };
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        take(&String::from_utf8_lossy(&line));
        line.clear();
    }
}

/// Operation that a log file is about, from its name.
fn log_subject(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    name.trim_end_matches(".json.log").trim_start_matches("burn_cubecl").trim_start_matches(['-', '_']).to_owned()
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Definition of a matmul; keys of fused operations wrap it.
fn matmul_definition(key: &Value) -> Option<&Value> {
    let key = if key["matmul_key"].is_object() { &key["matmul_key"] } else { key };
    key.get("definition").filter(|definition| definition["m"].is_u64())
}

/// Sizes m, n and k of the matmul that a line is about.
fn matmul_sizes(line: &str) -> Option<[u64; 3]> {
    let entry: Value = serde_json::from_str(line).ok()?;
    let definition = matmul_definition(&entry["key"]["key"])?;
    let [m, n, k] = ["m", "n", "k"].map(|axis| definition[axis].as_u64());
    Some([m?, n?, k?])
}

/// Converts one line of a log to text.
fn parse_decision(line: &str, subject: &str) -> Option<String> {
    let entry: Value = serde_json::from_str(line).ok()?;
    let value = &entry["value"];
    let fastest = value["fastest_index"].as_u64()?;
    let outcome = value["results"].as_array()?.iter().find_map(|result| {
        let outcome = &result["outcome"]["Ok"];
        (outcome["index"].as_u64() == Some(fastest)).then_some(outcome)
    })?;
    let key = &entry["key"]["key"];
    let problem = match matmul_definition(key) {
        Some(definition) => {
            let elem = definition["elem_lhs"]["Scalar"]["Float"].as_str().unwrap_or("").to_lowercase();
            format!("m{}-k{}-n{} {elem}", definition["m"], definition["k"], definition["n"])
        }
        None => {
            let mut numbers = Vec::new();
            flatten(key, "", &mut numbers);
            format!("{subject} {}", numbers.join("-"))
        }
    };
    Some(format!("{problem}: {}", outcome["name"].as_str()?))
}

/// Collects the numbers of a key with their names.
fn flatten(key: &Value, name: &str, numbers: &mut Vec<String>) {
    match key {
        Value::Number(number) => numbers.push(format!("{name}{number}")),
        Value::Array(list) => list.iter().for_each(|one| flatten(one, name, numbers)),
        Value::Object(fields) => fields.iter().for_each(|(name, one)| flatten(one, name, numbers)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EAGER: &str = r#"{"key":{"key":{"definition":{"m":64,"n":256,"k":128,"elem_lhs":{"Scalar":{"Float":"F32"}}}},
        "checksum":"e6"},"value":{"fastest_index":5,"results":[{"outcome":{"Ok":{"name":"matmul_slow","index":7}}},
        {"outcome":{"Err":{"Skip":{"name":"matmul_naive"}}}},{"outcome":{"Ok":{"name":"matmul_unit","index":5}}}]}}"#;

    const REDUCE: &str = r#"{"key":{"key":{"elem_input":{"Float":"F32"},"axis_is_contiguous":true,"vector_size":512,"vector_count":64},
        "checksum":"c3"},"value":{"fastest_index":0,"results":[{"outcome":{"Ok":{"name":"unit_reduce","index":0}}}]}}"#;

    fn line(text: &str) -> String {
        text.replace('\n', "") + "\n"
    }

    #[test]
    fn fastest_candidate_is_named() {
        let decided = parse_decision(EAGER, "matmul");
        assert_eq!(decided.as_deref(), Some("m64-k128-n256 f32: matmul_unit"));
        let fused = EAGER.replacen("{\"key\":{\"definition\"", "{\"key\":{\"matmul_key\":{\"definition\"", 1);
        let fused = fused.replacen("}}}},\n", "}}}}},\n", 1);
        assert_eq!((parse_decision(&fused, ""), matmul_sizes(&fused)), (decided, Some([64, 256, 128])));
        assert_eq!(parse_decision("{\"key\":", ""), None);
        let reduced = parse_decision(REDUCE, "kernel-reduce");
        assert_eq!(reduced.as_deref(), Some("kernel-reduce vector_count64-vector_size512: unit_reduce"));
    }

    #[test]
    fn decisions_are_known_in_later_runs() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("burn_cubecl-kernel-reduce-tune.json.log");
        let products = dir.path().join("burn_cubecl-kernel-matmul-tune-base.json.log");
        fs::write(&log, "").unwrap();
        fs::write(products, line(EAGER)).unwrap();
        let softmax = Case { workload: "softmax".into(), ..Case::default() };
        let before = AutotuneDecisions::snapshot(dir.path().to_owned());
        fs::write(&log, line(REDUCE)).unwrap();
        let first = before.collect(&softmax, &[], Implementation::Eager);
        assert_eq!(first, ["kernel-reduce-tune vector_count64-vector_size512: unit_reduce"]);
        assert_eq!(
            AutotuneDecisions::snapshot(dir.path().to_owned()).collect(&softmax, &[], Implementation::Eager),
            first
        );
        let other = Case { workload: "gelu".into(), ..softmax.clone() };
        assert!(
            AutotuneDecisions::snapshot(dir.path().to_owned()).collect(&other, &[], Implementation::Eager).is_empty()
        );
        let of = |products: &[[u64; 3]]| {
            AutotuneDecisions::snapshot(dir.path().to_owned()).collect(&other, products, Implementation::Eager)
        };
        assert_eq!(of(&[[64, 256, 128]]), ["m64-k128-n256 f32: matmul_unit"]);
        assert!(of(&[[64, 128, 256]]).is_empty());
    }
}
