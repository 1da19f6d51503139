//! What the lines of a journal say, and how they are written and read.

use crate::SinkError;
use calorimeter_case::record::{Record, Status, SuiteSpeedup};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SCHEMA: &str = "calorimeter-journal";
const VERSION: u32 = 1;

/// Where a run comes from: all that is needed to repeat it and to judge its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Tells this run from every other.
    pub run_id: String,
    /// When it started: RFC 3339, local time with its offset.
    pub started: String,
    /// The command line.
    pub argv: Vec<String>,
    /// The configuration after all defaults and overrides.
    pub config: serde_json::Value,
    /// A hash of all that decides which cases there are and how they are measured; a run continues only under the same.
    pub config_fingerprint: String,
    /// How many cases the plan has.
    pub plan_cases: u64,
    /// Machine, drivers, versions.
    pub environment: serde_json::Value,
    /// The folder below which torchao-compatible files go, seen from that of the journal. Early journals do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_dir: Option<PathBuf>,
}

/// A run was taken up again here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// When, as RFC 3339.
    pub time: String,
    /// The command line that did it.
    pub argv: Vec<String>,
    /// Machine, drivers, versions of this part of the run. Early journals do not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<serde_json::Value>,
}

/// The end of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// When, as RFC 3339.
    pub finished: String,
    /// Stopped before the plan was through.
    pub interrupted: bool,
    /// How many cases ended how, over the whole journal.
    pub counts: BTreeMap<Status, u64>,
    /// What else a reader should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The speed-ups of each recipe over all shapes.
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

/// What the first line of every version has.
#[derive(Deserialize)]
struct Signature {
    schema: String,
    version: u32,
}

/// A later line, as it is written.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineOut<'a> {
    Record(&'a Record),
    Resumed(&'a Resumed),
    Summary(&'a Summary),
}

/// The same as it is read: of a record what the reader wants to know.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineIn<R> {
    Record(R),
    Resumed(Resumed),
    Summary(Summary),
}

impl<R> LineIn<R> {
    /// The same, with what `make` makes of a record.
    pub fn map<M>(self, make: impl FnOnce(R) -> M) -> LineIn<M> {
        match self {
            LineIn::Record(record) => LineIn::Record(make(record)),
            LineIn::Resumed(resumed) => LineIn::Resumed(resumed),
            LineIn::Summary(summary) => LineIn::Summary(summary),
        }
    }
}

/// The first line.
pub fn first_line(path: &Path, header: &Header) -> Result<Vec<u8>, SinkError> {
    encode(path, &FirstLine { schema: SCHEMA.into(), version: VERSION, header })
}

/// A later line.
pub fn later_line(path: &Path, line: &LineOut<'_>) -> Result<Vec<u8>, SinkError> {
    encode(path, line)
}

/// The line of a record, and the record as it says it, where its series are too many for a line that is read again.
pub fn line_of(path: &Path, record: &Record, most: u64) -> Result<(Vec<u8>, Option<Record>), SinkError> {
    let line = later_line(path, &LineOut::Record(record))?;
    if line.len() as u64 <= most {
        return Ok((line, None));
    }
    let mut shortened = record.clone();
    shortened.take_series();
    let (long, most) = (line.len().div_ceil(1 << 20), most >> 20);
    let warning =
        format!("its windows and samples are not kept: its line of the journal had {long} MiB, more than {most}");
    shortened.outcome.warnings.push(warning);
    Ok((later_line(path, &LineOut::Record(&shortened))?, Some(shortened)))
}

fn encode(path: &Path, line: &impl Serialize) -> Result<Vec<u8>, SinkError> {
    let mut bytes = serde_json::to_vec(line).map_err(|cause| SinkError::format(path, cause))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// What the first line says.
pub fn read_first_line(line: &[u8], number: usize, path: &Path) -> Result<Header, SinkError> {
    match serde_json::from_slice::<Signature>(line) {
        Ok(signature) if signature.schema == SCHEMA && signature.version > VERSION => {
            Err(SinkError::NewerVersion { path: path.to_owned(), found: signature.version, known: VERSION })
        }
        Ok(signature) if signature.schema == SCHEMA => {
            serde_json::from_slice(line).map_err(|cause| bad_line(path, number, cause))
        }
        _ => Err(SinkError::NotAJournal { path: path.to_owned() }),
    }
}

/// What a later line says.
pub fn read_later_line<R: DeserializeOwned>(line: &[u8], number: usize, path: &Path) -> Result<LineIn<R>, SinkError> {
    serde_json::from_slice(line).map_err(|cause| bad_line(path, number, cause))
}

/// The record of a line that was read as one before.
pub fn record_of_line(line: &[u8], path: &Path) -> Result<Record, SinkError> {
    match serde_json::from_slice(line).map_err(|cause| SinkError::format(path, cause))? {
        LineIn::Record(record) => Ok(record),
        LineIn::Resumed(_) | LineIn::Summary(_) => Err(SinkError::NotAJournal { path: path.to_owned() }),
    }
}

fn bad_line(path: &Path, line: usize, cause: serde_json::Error) -> SinkError {
    SinkError::BadLine { path: path.to_owned(), line, cause }
}
