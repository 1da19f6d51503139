//! Kernels of a trace.

use super::column::{Column, Field, columns, fields};
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
    pub const COLUMNS: &'static [Column<Self>] = columns! { |profile|
        "trace": Text(profile.trace.as_deref()), "path of the trace, relative to the run directory";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "kernels.name": "text", "kernel that ran on the device in the trace, longest total first";
        "kernels.calls": "number", "calls per pass";
        "kernels.nanos": "number, ns", "time per pass";
        "kernels.share": "number", "share of the time of all kernels";
    };
}
