//! Memory that a case takes.

use super::column::{Column, Field, Read};
use super::number::no_number;
use serde::{Deserialize, Serialize};

/// Memory that a case takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// Peak of the device memory in use during the case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Memory in use, where it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<Memory>>,
    /// The folder of its memory profile, below the run's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_profile: Option<String>,
}

/// Device memory of a case: what tensors use, what the pool has handed out, and what it holds of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Peak of the bytes asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_allocated: Option<u64>,
    /// Peak of the bytes handed out, padding included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_active: Option<u64>,
    /// Peak of the bytes held from the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_reserved: Option<u64>,
    /// Peak of the bytes asked for, those of the inputs and weights left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_above_inputs: Option<u64>,
    /// How far the peaks can be trusted.
    #[serde(default)]
    pub bound: Bound,
    /// The most that the peak in use can be, where it is a lower bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_at_most: Option<u64>,
    /// The baseline's peak over this one.
    #[serde(default, skip_serializing_if = "no_number")]
    pub saving: Option<f64>,
    /// How far that can be trusted: of peaks that are bounds it is a bound itself.
    #[serde(default)]
    pub saving_bound: Bound,
}

/// What a peak is to the true one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The same, to 1 %.
    #[default]
    Exact,
    /// At most it.
    AtLeast,
    /// Nobody knows.
    Unknown,
}

impl Bound {
    /// The word used in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AtLeast => "at-least",
            Self::Unknown => "unknown",
        }
    }

    /// What stands before a figure.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Exact => "",
            Self::AtLeast => "≥ ",
            Self::Unknown => "≈ ",
        }
    }
}

impl Footprint {
    /// Its columns in tables, in their order.
    pub const COLUMNS: &'static [Column<Self>] = &[
        Column {
            name: "peak_bytes",
            field: "peak_bytes",
            unit: "bytes",
            doc: "peak of the memory in use: `memory.peak_allocated`, or the next of the three that is known",
            read: Read::Count(|footprint| footprint.peak_bytes),
        },
        Column {
            name: "peak_active_bytes",
            field: "memory.peak_active",
            unit: "bytes",
            doc: "peak of what the pool has handed out, padding included",
            read: Read::Count(|footprint| footprint.memory.as_ref()?.peak_active),
        },
        Column {
            name: "peak_reserved_bytes",
            field: "memory.peak_reserved",
            unit: "bytes",
            doc: "peak of what is held from the device",
            read: Read::Count(|footprint| footprint.memory.as_ref()?.peak_reserved),
        },
        Column {
            name: "peak_above_inputs",
            field: "memory.peak_above_inputs",
            unit: "bytes",
            doc: "peak without inputs and weights; absent for copies and exchanges",
            read: Read::Count(|footprint| footprint.memory.as_ref()?.peak_above_inputs),
        },
        Column {
            name: "memory_bound",
            field: "memory.bound",
            unit: "",
            doc: "how far the peaks, `peak_bytes` too, can be trusted: [`exact`, `at-least` or `unknown`](#memory)",
            read: Read::Text(|footprint| Some(footprint.memory.as_ref()?.bound.as_str())),
        },
        Column {
            name: "memory_saving",
            field: "memory.saving",
            unit: "",
            doc: "the baseline's peak over this one",
            read: Read::Number(|footprint| footprint.memory.as_ref()?.saving),
        },
        Column {
            name: "memory_saving_bound",
            field: "memory.saving_bound",
            unit: "",
            doc: "`at-least` where the saving is the least that it may be",
            read: Read::Text(|footprint| {
                Some(footprint.memory.as_ref().filter(|memory| memory.saving.is_some())?.saving_bound.as_str())
            }),
        },
    ];

    /// What stands in tables beside the trace.
    pub const FILES: &'static [Column<Self>] = &[Column {
        name: "memory_profile",
        field: "memory_profile",
        unit: "",
        doc: "the folder of the memory profile, below the run's",
        read: Read::Text(|footprint| footprint.memory_profile.as_deref()),
    }];

    /// Its fields that no column shows.
    pub const JOURNAL_ONLY: &'static [Field] = &[
        Field { name: "memory.peak_allocated", kind: "whole number, bytes", doc: "peak of what was asked for" },
        Field {
            name: "memory.peak_at_most",
            kind: "whole number, bytes",
            doc: "the most that the peak can be, where it is a lower bound",
        },
    ];
}
