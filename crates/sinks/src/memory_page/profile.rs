//! What the page is given.

use calorimeter_case::record::Bound;
use serde::{Deserialize, Serialize};

/// Memory over time under one recipe and implementation, as one source told it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// What ran: `baseline eager`, `int8wo eager`, …
    pub label: String,
    /// Who told: `host-allocator`, `cupti`, `pool-statistics`, …
    pub source: String,
    /// The index of the profile that is this one's baseline. It has the same source.
    pub against: Option<usize>,
    /// When it ended, in nanoseconds since its start.
    pub end_ns: u64,
    /// From when on the source has nothing to tell any more because it lost events.
    pub lost_from_ns: Option<u64>,
    /// Bytes asked for: from each moment on the value beside it, in order of time. Empty where not told.
    pub allocated: Vec<(u64, u64)>,
    /// Bytes handed out, padding included, in the same way.
    pub active: Vec<(u64, u64)>,
    /// Bytes held of the device, in the same way.
    pub reserved: Vec<(u64, u64)>,
    /// Named moments.
    pub marks: Vec<Mark>,
    /// The highest values.
    pub peaks: Peaks,
    /// When the peak was whose blocks are given.
    pub peak_at_ns: Option<u64>,
    /// The blocks that lived at the peak; none where the source tells sums alone.
    pub blocks: Vec<Block>,
    /// What a reader must know to read the figures right.
    pub notes: Vec<String>,
}

/// A moment with a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Nanoseconds since the start of the profile.
    pub at_ns: u64,
    /// Its name.
    pub name: String,
}

/// The most bytes there ever were; absent where the source does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peaks {
    /// Of those asked for.
    pub allocated: Option<u64>,
    /// Of those handed out.
    pub active: Option<u64>,
    /// Of those held of the device.
    pub reserved: Option<u64>,
    /// How far they can be trusted.
    pub bound: Bound,
}

/// Memory that was allocated and not freed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Where it begins.
    pub address: u64,
    /// How large it is.
    pub bytes: u64,
    /// When it was allocated.
    pub since_ns: u64,
    /// What it is for.
    pub what: Option<String>,
}

impl Profile {
    pub(super) fn lines(&self) -> [&[(u64, u64)]; 3] {
        [&self.allocated, &self.active, &self.reserved]
    }
}

impl Peaks {
    pub(super) fn named(&self) -> [(&'static str, Option<u64>); 3] {
        [("allocated", self.allocated), ("active", self.active), ("reserved", self.reserved)]
    }
}
