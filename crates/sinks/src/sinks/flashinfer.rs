//! Traces of flashinfer-bench: a file per definition, with a line per solution and workload.

use crate::sink::{Sink, SinkInput};
use crate::{SinkError, atomic};
use calorimeter_case::record::{Record, Status};
use calorimeter_case::{Case, Device, Regime};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

/// Implementation that runs the reference of a definition, which is not a solution.
const REFERENCE: &str = "reference";

/// Writes `traces/<definition>.jsonl` for the workloads of data sets of flashinfer-bench.
pub(crate) struct Flashinfer;

impl Sink for Flashinfer {
    fn name(&self) -> &'static str {
        "flashinfer"
    }

    fn write(&self, run: &SinkInput) -> Result<Vec<PathBuf>, SinkError> {
        let references = run.records.iter().filter(|record| is_reference(&record.case));
        let references: HashMap<TraceKey, f64> =
            references.filter_map(|record| Some((trace_key(&record.case)?, milliseconds(record)?))).collect();
        let mut files: BTreeMap<String, Vec<Trace>> = BTreeMap::new();
        for record in run.records.iter().filter(|record| !is_reference(&record.case)) {
            let Some(key) = trace_key(&record.case) else { continue };
            if let Some(trace) = Trace::from_record(record, references.get(&key).copied(), run) {
                files.entry(file_name(trace.definition)).or_default().push(trace);
            }
        }
        let mut paths = Vec::new();
        for (name, traces) in files {
            let path = run.dir.join("traces").join(name);
            let mut lines = String::new();
            for trace in &traces {
                let line = serde_json::to_string(trace).map_err(|cause| SinkError::format(&path, cause))?;
                lines.extend([&line, "\n"]);
            }
            atomic::write(&path, lines.as_bytes())?;
            paths.push(path);
        }
        Ok(paths)
    }
}

/// Name of the file of a definition; names in a journal are arbitrary.
fn file_name(definition: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    format!("{}.jsonl", definition.replace(|c| !is_plain(c), "_"))
}

/// Result of a solution for a workload.
#[derive(Serialize)]
struct Trace<'a> {
    definition: &'a str,
    workload: Value,
    solution: String,
    evaluation: Evaluation<'a>,
}

#[derive(Serialize)]
struct Evaluation<'a> {
    status: &'static str,
    environment: TraceEnvironment<'a>,
    timestamp: &'a str,
    log: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    correctness: Option<Correctness>,
    #[serde(skip_serializing_if = "Option::is_none")]
    performance: Option<Performance>,
}

#[derive(Serialize)]
struct TraceEnvironment<'a> {
    hardware: &'a str,
    libs: BTreeMap<&'static str, &'a str>,
}

#[derive(Serialize)]
struct Correctness {
    max_relative_error: Value,
    max_absolute_error: Value,
}

#[derive(Serialize)]
struct Performance {
    latency_ms: f64,
    reference_latency_ms: f64,
    speedup_factor: f64,
}

impl<'a> Trace<'a> {
    /// Trace of a solution. `None` for cases that were not evaluated: unsupported and skipped cases, and cases whose
    /// reference has no time.
    fn from_record(record: &'a Record, reference_latency_ms: Option<f64>, run: &'a SinkInput) -> Option<Self> {
        let workload = serde_json::from_str(record.case.flashinfer_workload.as_deref()?).ok()?;
        let performance = Performance::new(record, reference_latency_ms?);
        let correctness = Correctness::from_record(record);
        let (status, correctness, performance) = match record.outcome.status {
            Status::Ok => ("PASSED", Some(correctness), Some(performance?)),
            Status::Mismatch => ("INCORRECT_NUMERICAL", Some(correctness), None),
            Status::Failed | Status::Crashed => ("RUNTIME_ERROR", None, None),
            Status::Timeout => ("TIMEOUT", None, None),
            Status::Unsupported | Status::Skipped => return None,
        };
        let environment = TraceEnvironment::new(record, run);
        let log = [record.outcome.reason.as_deref(), record.execution.kernel.as_deref()];
        let evaluation = Evaluation {
            status,
            environment,
            timestamp: record.outcome.ended.as_deref().unwrap_or(&run.header.started),
            log: log.into_iter().flatten().collect::<Vec<_>>().join("\n"),
            correctness,
            performance,
        };
        let solution = record.case.implementation.to_string();
        Some(Self { definition: record.case.workload.as_str(), workload, solution, evaluation })
    }
}

impl Correctness {
    /// Errors of a record. An absent error is that of an output with values that are not finite.
    fn from_record(record: &Record) -> Self {
        let accuracy = record.accuracy.as_deref();
        let or_nan = |error: Option<f64>| error.map_or_else(|| Value::from("NaN"), Value::from);
        Self {
            max_relative_error: or_nan(accuracy.and_then(|accuracy| accuracy.max_rel)),
            max_absolute_error: or_nan(accuracy.and_then(|accuracy| accuracy.max_abs)),
        }
    }
}

impl Performance {
    /// Times of a record and of its reference.
    fn new(record: &Record, reference_latency_ms: f64) -> Option<Self> {
        let latency_ms = milliseconds(record)?;
        Some(Self { latency_ms, reference_latency_ms, speedup_factor: reference_latency_ms / latency_ms })
    }
}

/// Time of a successful record.
fn milliseconds(record: &Record) -> Option<f64> {
    record.time.time_ns.filter(|_| record.is_ok()).map(|time| time.median / 1e6)
}

/// Properties that a solution and its reference share: definition, workload, device and regime.
type TraceKey<'a> = (&'a str, &'a str, Device, Regime);

fn trace_key(case: &Case) -> Option<TraceKey<'_>> {
    Some((case.workload.as_str(), case.flashinfer_workload.as_deref()?, case.device, case.regime))
}

fn is_reference(case: &Case) -> bool {
    case.implementation.name().as_str() == REFERENCE
}

impl<'a> TraceEnvironment<'a> {
    fn new(record: &Record, run: &'a SinkInput) -> Self {
        let version = run.header.environment["calorimeter"].as_str();
        let libs = version.map(|version| ("calorimeter", version)).into_iter().collect();
        Self { hardware: run.device_name(record.case.device).unwrap_or("unknown"), libs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeriesStore;
    use crate::journal::Header;
    use calorimeter_case::Implementation;
    use calorimeter_case::record::{Accuracy, Estimate};
    use serde_json::json;

    fn record(name: &str, workload: &str, status: Status, milliseconds: Option<f64>) -> Record {
        let case = Case {
            workload: String::from("a/../norm").into(),
            implementation: Implementation::from_record(name),
            flashinfer_workload: Some(json!({ "uuid": workload }).to_string()),
            ..Case::default()
        };
        let mut record = Record::new(case, status);
        record.time.time_ns = milliseconds.map(|time| Estimate { median: 1e6 * time, lo: None, hi: None });
        record.accuracy = Some(Box::new(Accuracy { max_abs: Some(0.5), ..Accuracy::default() }));
        record
    }

    #[test]
    fn each_evaluated_solution_is_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let records = vec![
            record("reference", "u", Status::Ok, Some(3.0)),
            record("fast", "u", Status::Ok, Some(1.5)),
            record("wrong", "u", Status::Mismatch, None),
            record("slow", "u", Status::Timeout, None),
            record("cuda", "u", Status::Unsupported, None),
            record("reference", "v", Status::Failed, None),
            record("fast", "v", Status::Ok, Some(1.0)),
            Record::new(Case::default(), Status::Ok),
        ];
        let run = SinkInput {
            dir: folder.path().into(),
            output_dir: folder.path().into(),
            header: Header::default(),
            records,
            stored: SeriesStore::default(),
        };
        let paths = Flashinfer.write(&run).unwrap();
        assert_eq!(paths, [folder.path().join("traces/a____norm.jsonl")]);
        let text = std::fs::read_to_string(&paths[0]).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |part: &str| lines.iter().map(|line| line["evaluation"][part].clone()).collect::<Vec<_>>();
        assert_eq!(of("status"), ["PASSED", "INCORRECT_NUMERICAL", "TIMEOUT"]);
        let times = json!({ "latency_ms": 1.5, "reference_latency_ms": 3.0, "speedup_factor": 2.0 });
        assert_eq!(of("performance"), [times, Value::Null, Value::Null]);
        let errors = json!({ "max_relative_error": "NaN", "max_absolute_error": 0.5 });
        assert_eq!(of("correctness"), [errors.clone(), errors, Value::Null]);
        assert_eq!((&lines[0]["solution"], &lines[0]["workload"]), (&json!("fast"), &json!({ "uuid": "u" })));
    }
}
