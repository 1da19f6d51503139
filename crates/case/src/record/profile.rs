//! Kernels of a trace.

use super::column::{CellReader, Column, Field};
use serde::{Deserialize, Serialize};

/// Kernels of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Kernels that ran on the device, longest total first, if a trace was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelShare>,
    /// Path of the trace, relative to the run directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// Share of one kernel in a pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelShare {
    /// Kernel name.
    pub name: String,
    /// Calls per pass.
    pub calls: f64,
    /// Total time per pass, in nanoseconds.
    pub nanos: f64,
    /// Share of the time of all kernels.
    pub share: f64,
}

impl Profile {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = &[Column {
        name: "trace",
        field: "trace",
        unit: "",
        doc: "path of the trace, relative to the run directory",
        read: CellReader::Text(|profile| profile.trace.as_deref()),
    }];

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field {
            name: "kernels.name",
            kind: "text",
            doc: "kernel that ran on the device in the trace, longest total first",
        },
        Field { name: "kernels.calls", kind: "number", doc: "calls per pass" },
        Field { name: "kernels.nanos", kind: "number, ns", doc: "time per pass" },
        Field { name: "kernels.share", kind: "number", doc: "share of the time of all kernels" },
    ];
}
