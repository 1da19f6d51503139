//! Events and samples of a timeline.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Allocation or free of a block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryEvent {
    /// Nanoseconds since the start of the timeline.
    pub at_ns: u64,
    /// Start address of the block.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// True for a free, false for an allocation.
    pub freed: bool,
    /// Purpose of the block, if the source reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// Statistics of a pool at one moment.
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

/// Named moment: `before inference`, `pass 1`, …
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineMark {
    /// Nanoseconds since the start of the timeline.
    pub at_ns: u64,
    /// Name.
    pub name: Cow<'static, str>,
}

/// Number of missing events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostEvents {
    /// Maximum number of missing events.
    pub events: u64,
    /// Time from which all events are missing and before which none is; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
}

/// Totals of a recording, which are exact even if events were lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AllocationTotals {
    /// Bytes in use at the end minus the start; negative if more was freed than allocated.
    pub change_bytes: i64,
    /// Peak above the start.
    pub peak_bytes: u64,
}
