//! Memory use of a case.

use super::column::{Column, Field, columns, fields};
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
    pub const COLUMNS: &'static [Column<Self>] = columns! { |footprint|
        "peak_bytes" in "bytes": Count(footprint.peak_bytes),
            "peak of the memory in use: the first known of `memory.peak_allocated`, `memory.peak_active` and `memory.peak_reserved`";
        "peak_active_bytes" from "memory.peak_active" in "bytes": Count(footprint.memory.as_ref()?.peak_active),
            "peak of the bytes handed out by the pool, padding included";
        "peak_reserved_bytes" from "memory.peak_reserved" in "bytes": Count(footprint.memory.as_ref()?.peak_reserved),
            "peak of the bytes reserved from the device";
        "peak_above_inputs" from "memory.peak_above_inputs" in "bytes":
            Count(footprint.memory.as_ref()?.peak_above_inputs),
            "peak without inputs and weights; absent for copies and for exchanges between devices";
        "memory_bound" from "memory.bound": Text(Some(footprint.memory.as_ref()?.bound.as_str())),
            "certainty of the peaks, including `peak_bytes`: [`exact`, `at-least` or `unknown`](#memory)";
        "memory_saving" from "memory.saving": Number(footprint.memory.as_ref()?.saving),
            "peak of the baseline divided by the peak of this case";
        "memory_saving_bound" from "memory.saving_bound":
            Text(Some(footprint.memory.as_ref().filter(|memory| memory.saving.is_some())?.saving_bound.as_str())),
            "`at-least` if the saving is a lower bound";
    };

    /// Columns that stand next to the trace.
    pub const FILE_COLUMNS: &'static [Column<Self>] = columns! { |footprint|
        "memory_profile": Text(footprint.memory_profile.as_deref()),
            "folder of the memory profile, relative to the run directory";
    };

    /// Fields without a column.
    pub const JOURNAL_ONLY: &'static [Field] = fields! {
        "memory.peak_allocated": "whole number, bytes", "peak of the requested bytes";
        "memory.peak_at_most": "whole number, bytes", "upper bound of the peak, if the peak is a lower bound";
    };
}
