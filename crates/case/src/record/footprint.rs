//! Memory that a case takes.

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
