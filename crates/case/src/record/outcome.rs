//! Status of a case, with its reason.

use super::column::{Column, Field, columns, fields};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Status of a case with its reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Status.
    pub status: Status,
    /// Reason for a status other than `ok`, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Start time of the case's group, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// Time of the record, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Last lines of the worker's stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Self {
        Self { status, reason: None, started: None, ended: None, stderr_tail: None }
    }
}

/// Status of a case. Only `ok` has a valid time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Measured, with a correct output.
    Ok,
    /// The output was wrong, so the case was not timed.
    Mismatch,
    /// Recipe or workload not supported by this implementation or device.
    Unsupported,
    /// Not run, for a reason outside the case.
    Skipped,
    /// Ended with an error.
    Failed,
    /// Exceeded its time limit.
    Timeout,
    /// Crashed its worker process.
    Crashed,
}

impl Status {
    /// All statuses, in the order of summaries.
    pub const ALL: [Status; 7] = [
        Status::Ok,
        Status::Mismatch,
        Status::Failed,
        Status::Timeout,
        Status::Crashed,
        Status::Unsupported,
        Status::Skipped,
    ];

    /// Name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::Mismatch => "mismatch",
            Status::Unsupported => "unsupported",
            Status::Skipped => "skipped",
            Status::Failed => "failed",
            Status::Timeout => "timeout",
            Status::Crashed => "crashed",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Outcome {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = columns! { |outcome|
        "status": Text(Some(outcome.status.as_str())), "status of the case: see [below](#statuses)";
        "reason": Text(outcome.reason.as_deref()), "reason for a status other than `ok`";
    };

    /// Column near the end of tables.
    pub const STDERR_COLUMNS: &'static [Column<Self>] = columns! { |outcome|
        "stderr_tail": Text(outcome.stderr_tail.as_deref()), "last 4 KiB of stderr of the lost worker";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "started": "RFC 3339", "start time of the case's group";
        "ended": "RFC 3339", "time of the record";
    };
}
