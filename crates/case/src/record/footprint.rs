//! Memory use of a case.

use super::column::{CellReader, Column, Field};
use super::number::is_not_finite;
use serde::{Deserialize, Serialize};

/// Memory use of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// Peak of the device memory in use during the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Memory peaks, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<PeakMemory>>,
    /// Folder of the memory profile, relative to the run directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_profile: Option<String>,
}

/// Peaks of device memory at three levels: requested by tensors, handed out by the pool, reserved from the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeakMemory {
    /// Peak of the requested bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_allocated: Option<u64>,
    /// Peak of the bytes handed out by the pool, padding included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_active: Option<u64>,
    /// Peak of the bytes reserved from the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_reserved: Option<u64>,
    /// Peak of the requested bytes, without inputs and weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_above_inputs: Option<u64>,
    /// Certainty of the peaks.
    #[serde(default)]
    pub bound: PeakBound,
    /// Upper bound of the peak in use, if the peak is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_at_most: Option<u64>,
    /// Peak of the baseline divided by the peak of this case.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub saving: Option<f64>,
    /// Certainty of the saving: a bound if it is computed from peaks that are bounds.
    #[serde(default)]
    pub saving_bound: PeakBound,
}

/// Relation of a reported peak to the true one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeakBound {
    /// Equal, to 1 %.
    #[default]
    Exact,
    /// Lower bound of the true peak.
    AtLeast,
    /// Unknown.
    Unknown,
}

impl PeakBound {
    /// Name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at-least",
            Self::Unknown => "unknown",
        }
    }

    /// Prefix of a displayed value.
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::AtLeast => "≥ ",
            Self::Unknown => "≈ ",
        }
    }
}

impl Footprint {
    /// Columns in tables, in order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "peak_bytes",
            field: "peak_bytes",
            unit: "bytes",
            doc: "peak of the memory in use: the first known of `memory.peak_allocated`, `memory.peak_active` and `memory.peak_reserved`",
            read: CellReader::Count(|footprint| footprint.peak_bytes),
        },
        Column {
            name: "peak_active_bytes",
            field: "memory.peak_active",
            unit: "bytes",
            doc: "peak of the bytes handed out by the pool, padding included",
            read: CellReader::Count(|footprint| footprint.memory.as_ref()?.peak_active),
        },
        Column {
            name: "peak_reserved_bytes",
            field: "memory.peak_reserved",
            unit: "bytes",
            doc: "peak of the bytes reserved from the device",
            read: CellReader::Count(|footprint| footprint.memory.as_ref()?.peak_reserved),
        },
        Column {
            name: "peak_above_inputs",
            field: "memory.peak_above_inputs",
            unit: "bytes",
            doc: "peak without inputs and weights; absent for copies and for exchanges between devices",
            read: CellReader::Count(|footprint| footprint.memory.as_ref()?.peak_above_inputs),
        },
        Column {
            name: "memory_bound",
            field: "memory.bound",
            unit: "",
            doc: "certainty of the peaks, including `peak_bytes`: [`exact`, `at-least` or `unknown`](#memory)",
            read: CellReader::Text(|footprint| Some(footprint.memory.as_ref()?.bound.as_str())),
        },
        Column {
            name: "memory_saving",
            field: "memory.saving",
            unit: "",
            doc: "peak of the baseline divided by the peak of this case",
            read: CellReader::Number(|footprint| footprint.memory.as_ref()?.saving),
        },
        Column {
            name: "memory_saving_bound",
            field: "memory.saving_bound",
            unit: "",
            doc: "`at-least` if the saving is a lower bound",
            read: CellReader::Text(|footprint| {
                Some(footprint.memory.as_ref().filter(|memory| memory.saving.is_some())?.saving_bound.as_str())
            }),
        },
    ];

    /// Columns that stand next to the trace.
    pub const FILE_COLUMNS: &'static [Column<Self>] = &[Column {
        name: "memory_profile",
        field: "memory_profile",
        unit: "",
        doc: "folder of the memory profile, relative to the run directory",
        read: CellReader::Text(|footprint| footprint.memory_profile.as_deref()),
    }];

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field { name: "memory.peak_allocated", kind: "whole number, bytes", doc: "peak of the requested bytes" },
        Field {
            name: "memory.peak_at_most",
            kind: "whole number, bytes",
            doc: "upper bound of the peak, if the peak is a lower bound",
        },
    ];
}
