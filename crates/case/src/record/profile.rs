//! What a trace shows.

use super::column::{Column, Field, Read};
use serde::{Deserialize, Serialize};

/// What a trace shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// What ran on the device, the longest first, where a trace was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelShare>,
    /// The trace of the case, below the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// A kernel's part of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelShare {
    /// Its name.
    pub name: String,
    /// How often it ran.
    pub calls: f64,
    /// How long it ran in total, in nanoseconds.
    pub nanos: f64,
    /// Its share of the time of all kernels.
    pub share: f64,
}

impl Profile {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[Column {
        name: "trace",
        field: "trace",
        unit: "",
        doc: "the trace, below the run's folder",
        read: Read::Text(|profile| profile.trace.as_deref()),
    }];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field {
            name: "kernels.name",
            kind: "text",
            doc: "a kernel that ran on the device in the trace, the longest first",
        },
        Field { name: "kernels.calls", kind: "number", doc: "how often it ran in one pass" },
        Field { name: "kernels.nanos", kind: "number, ns", doc: "how long it ran in one pass" },
        Field { name: "kernels.share", kind: "number", doc: "its share of the time of all kernels" },
    ];
}
