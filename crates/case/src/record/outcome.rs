//! How a case ended, and what a reader should know.

use super::column::{Column, Field, Read, joined};
use serde::{Deserialize, Serialize};
use std::fmt;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// Why it is not `ok`, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the turn of the case and of those measured beside it came, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// When it was recorded, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// The last lines that the worker wrote to stderr.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
    /// What a reader of the figure should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl From<Status> for Outcome {
    fn from(status: Status) -> Self {
        Self { status, reason: None, started: None, ended: None, stderr_tail: None, warnings: Vec::new() }
    }
}

/// How a case ended. Only `ok` has a time that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Measured, and the output was right.
    Ok,
    /// The output was wrong, so it was not timed.
    Mismatch,
    /// The recipe or workload does not exist for this implementation or device.
    Unsupported,
    /// Not run, for a reason that lies outside the case.
    Skipped,
    /// Ended with an error.
    Failed,
    /// Took longer than allowed.
    Timeout,
    /// Took its worker process with it.
    Crashed,
}

impl Status {
    /// Every status, in the order in which summaries count them.
    pub const ALL: [Status; 7] = [
        Status::Ok,
        Status::Mismatch,
        Status::Failed,
        Status::Timeout,
        Status::Crashed,
        Status::Unsupported,
        Status::Skipped,
    ];

    /// The word used in the JSON.
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
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "status",
            field: "status",
            unit: "",
            doc: "how the case ended: see [below](#statuses)",
            read: Read::Text(|outcome| Some(outcome.status.as_str())),
        },
        Column {
            name: "reason",
            field: "reason",
            unit: "",
            doc: "why it is not `ok`",
            read: Read::Text(|outcome| outcome.reason.as_deref()),
        },
    ];

    /// What stands in tables last.
    pub const REMARKS: &'static [Column<Self>] = &[
        Column {
            name: "stderr_tail",
            field: "stderr_tail",
            unit: "",
            doc: "last 4 KiB of the worker that was lost",
            read: Read::Text(|outcome| outcome.stderr_tail.as_deref()),
        },
        Column {
            name: "warnings",
            field: "warnings",
            unit: "",
            doc: "what a reader of the figure should know; a list in the record, joined by `; ` in the column",
            read: Read::Written(|outcome| joined(&outcome.warnings)),
        },
    ];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field {
            name: "started",
            kind: "RFC 3339",
            doc: "when the turn of the case and of those measured beside it came",
        },
        Field { name: "ended", kind: "RFC 3339", doc: "when it was recorded" },
    ];
}
