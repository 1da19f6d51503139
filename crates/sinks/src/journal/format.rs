//! Format of journal lines.

use crate::SinkError;
use calorimeter_case::record::{Record, Status, SuiteSpeedup, Warning};
use chrono::Local;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "calorimeter-journal";
const VERSION: u32 = 1;

/// Provenance of a run: all that is needed to repeat it and to judge its results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Unique id of the run.
    pub run_id: String,
    /// Start time: RFC 3339, local time with offset.
    pub started: String,
    /// Command line.
    pub argv: Vec<String>,
    /// Configuration after all defaults and overrides.
    pub config: serde_json::Value,
    /// Hash of all settings that determine the cases and how they are measured. A run is resumed only with an equal
    /// one.
    pub config_fingerprint: String,
    /// Number of cases in the plan, if known in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_cases: Option<u64>,
    /// Machine, drivers and versions.
    pub environment: serde_json::Value,
    /// Directory of the torchao-compatible files, relative to the journal. Absent in early journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_dir: Option<PathBuf>,
}

impl Header {
    /// Creates the header of a run that starts now: run id from name and time, command line of this process, and empty
    /// configuration, fingerprint and environment. The number of planned cases is unknown.
    ///
    /// ```
    /// use calorimeter_sinks::{journal::Header, serde_json::json};
    ///
    /// let config = json!({ "sizes": [1000, 10_000] });
    /// let header = Header { config, plan_cases: Some(2), ..Header::now("sorting") };
    /// println!("{}", header.run_id); // sorting-20260309-070501
    /// ```
    pub fn now(name: &str) -> Self {
        let now = Local::now();
        Self {
            run_id: format!("{name}-{}", now.format("%Y%m%d-%H%M%S")),
            started: now.to_rfc3339(),
            argv: std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect(),
            config: json!({}),
            config_fingerprint: String::new(),
            plan_cases: None,
            environment: json!({}),
            output_dir: None,
        }
    }
}

/// Resumption of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// Time in RFC 3339.
    pub time: String,
    /// Command line.
    pub argv: Vec<String>,
    /// Machine, drivers and versions of this part of the run. Absent in early journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<serde_json::Value>,
}

/// End of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Time in RFC 3339.
    pub finished: String,
    /// True if the run was stopped before the end of the plan.
    pub interrupted: bool,
    /// Number of cases per status, over the whole journal.
    pub counts: BTreeMap<Status, u64>,
    /// Notes for readers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Mean speed-up of each recipe over all shapes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suite: Vec<SuiteSpeedup>,
}

#[derive(Serialize)]
struct FirstLine<'a> {
    schema: String,
    version: u32,
    #[serde(flatten)]
    header: &'a Header,
}

/// Fields that the first line of every version has.
#[derive(Deserialize)]
struct FormatSignature {
    schema: String,
    version: u32,
}

/// Later line, for writing.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OutgoingLine<'a> {
    Record(&'a Record),
    Resumed(&'a Resumed),
    Summary(&'a RunSummary),
}

/// Later line, for reading; `R` is the part of a record that the reader requested.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IncomingLine<R> {
    Record(R),
    Resumed(Resumed),
    Summary(RunSummary),
}

impl<R> IncomingLine<R> {
    /// Converts the record.
    pub(crate) fn map<M>(self, make: impl FnOnce(R) -> M) -> IncomingLine<M> {
        match self {
            IncomingLine::Record(record) => IncomingLine::Record(make(record)),
            IncomingLine::Resumed(resumed) => IncomingLine::Resumed(resumed),
            IncomingLine::Summary(summary) => IncomingLine::Summary(summary),
        }
    }
}

/// Encodes the first line.
pub(crate) fn encode_first_line(path: &Path, header: &Header) -> Result<Vec<u8>, SinkError> {
    encode(path, &FirstLine { schema: SCHEMA.into(), version: VERSION, header })
}

/// Encodes a later line.
pub(crate) fn encode_line(path: &Path, line: &OutgoingLine<'_>) -> Result<Vec<u8>, SinkError> {
    encode(path, line)
}

/// Encodes a record. If its time series exceed `most` bytes, encodes it without them and returns the shortened record.
pub(crate) fn encode_record(path: &Path, record: &Record, most: u64) -> Result<(Vec<u8>, Option<Record>), SinkError> {
    let line = encode_line(path, &OutgoingLine::Record(record))?;
    if line.len() as u64 <= most {
        return Ok((line, None));
    }
    let mut shortened = record.clone();
    shortened.take_series();
    let (long, most) = (line.len().div_ceil(1 << 20), most >> 20);
    shortened.warnings.push(Warning::dropped_series(long, most));
    Ok((encode_line(path, &OutgoingLine::Record(&shortened))?, Some(shortened)))
}

fn encode(path: &Path, line: &impl Serialize) -> Result<Vec<u8>, SinkError> {
    let mut bytes = serde_json::to_vec(line).map_err(|cause| SinkError::format(path, cause))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Decodes the first line.
pub(crate) fn read_first_line(line: &[u8], number: usize, path: &Path) -> Result<Header, SinkError> {
    match serde_json::from_slice::<FormatSignature>(line) {
        Ok(signature) if signature.schema == SCHEMA && signature.version > VERSION => {
            Err(SinkError::NewerVersion { path: path.to_owned(), found: signature.version, known: VERSION })
        }
        Ok(signature) if signature.schema == SCHEMA => {
            serde_json::from_slice(line).map_err(|cause| bad_line(path, number, cause))
        }
        _ => Err(SinkError::NotAJournal { path: path.to_owned() }),
    }
}

/// Decodes a later line.
pub(crate) fn read_later_line<R: DeserializeOwned>(
    line: &[u8],
    number: usize,
    path: &Path,
) -> Result<IncomingLine<R>, SinkError> {
    serde_json::from_slice(line).map_err(|cause| bad_line(path, number, cause))
}

/// Decodes a line that is known to hold a record.
pub(crate) fn decode_record(line: &[u8], path: &Path) -> Result<Record, SinkError> {
    match serde_json::from_slice(line).map_err(|cause| SinkError::format(path, cause))? {
        IncomingLine::Record(record) => Ok(record),
        IncomingLine::Resumed(_) | IncomingLine::Summary(_) => Err(SinkError::NotAJournal { path: path.to_owned() }),
    }
}

fn bad_line(path: &Path, line: usize, cause: serde_json::Error) -> SinkError {
    SinkError::BadLine { path: path.to_owned(), line, cause }
}
