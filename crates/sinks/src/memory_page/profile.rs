//! Input of the page.

use calorimeter_case::record::PeakBound;
use serde::{Deserialize, Serialize};

/// Memory over time under one recipe and implementation, as recorded by one source.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryProfile {
    /// Recipe and implementation: `baseline eager`, `int8wo eager`, …
    pub label: String,
    /// Source: `host-allocator`, `cupti`, `pool-statistics`, …
    pub source: String,
    /// Index of the baseline profile, which has an equal source.
    pub against: Option<usize>,
    /// End, in nanoseconds since the start.
    pub end_ns: u64,
    /// Time from which the source lost events.
    pub lost_from_ns: Option<u64>,
    /// Requested bytes as (time, value), in order of time; each value holds from its time on. Empty if unavailable.
    pub allocated: Vec<(u64, u64)>,
    /// Allocated bytes including padding, as (time, value).
    pub active: Vec<(u64, u64)>,
    /// Bytes reserved on the device, as (time, value).
    pub reserved: Vec<(u64, u64)>,
    /// Named points in time.
    pub marks: Vec<MemoryMark>,
    /// Maximum values.
    pub peaks: PeakBytes,
    /// Time of the peak whose blocks are listed.
    pub peak_at_ns: Option<u64>,
    /// Blocks alive at the peak; empty if the source reports totals only.
    pub blocks: Vec<MemoryBlock>,
    /// Notes on the interpretation of the values.
    pub notes: Vec<String>,
}

/// Named point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMark {
    /// Nanoseconds since the start of the profile.
    pub at_ns: u64,
    /// Name.
    pub name: String,
}

/// Maximum bytes; `None` if the source does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeakBytes {
    /// Requested bytes.
    pub allocated: Option<u64>,
    /// Allocated bytes including padding.
    pub active: Option<u64>,
    /// Bytes reserved on the device.
    pub reserved: Option<u64>,
    /// Accuracy of the values.
    pub bound: PeakBound,
}

/// Memory block that was not freed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryBlock {
    /// Start address.
    pub address: u64,
    /// Size.
    pub bytes: u64,
    /// Allocation time.
    pub since_ns: u64,
    /// Purpose.
    pub what: Option<String>,
}

impl MemoryProfile {
    pub(super) fn lines(&self) -> [&[(u64, u64)]; 3] {
        [&self.allocated, &self.active, &self.reserved]
    }
}

impl PeakBytes {
    pub(super) fn with_names(&self) -> [(&'static str, Option<u64>); 3] {
        [("allocated", self.allocated), ("active", self.active), ("reserved", self.reserved)]
    }
}
