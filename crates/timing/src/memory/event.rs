//! What a timeline is made of.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A block that was allocated or freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEvent {
    /// Nanoseconds since the start of the timeline.
    pub at_ns: u64,
    /// Where the block begins.
    pub address: u64,
    /// How large it is.
    pub bytes: u64,
    /// Whether it was freed; otherwise it was allocated.
    pub freed: bool,
    /// What it is for, where the source tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// A pool's statistics at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolSample {
    /// Nanoseconds since the start of the timeline.
    pub at_ns: u64,
    /// See [`Quantity::Allocated`](super::Quantity::Allocated).
    pub allocated: u64,
    /// See [`Quantity::Active`](super::Quantity::Active).
    pub active: u64,
    /// See [`Quantity::Reserved`](super::Quantity::Reserved).
    pub reserved: u64,
}

/// A moment with a name: `before inference`, `pass 1`, …
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Nanoseconds since the start of the timeline.
    pub at_ns: u64,
    /// Its name.
    pub name: Cow<'static, str>,
}

/// Events that happened and are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lost {
    /// How many, at most.
    pub events: u64,
    /// Up to this moment none is missing, and from then on all are; absent where nobody knows which are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
}

/// What a recording counted besides its events. It is exact, however many of those were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Totals {
    /// Bytes at the end less those at the start. Below zero where more was freed than allocated.
    pub change_bytes: i64,
    /// The most that there ever was above the start.
    pub peak_bytes: u64,
}
