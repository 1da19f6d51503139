//! Sources of memory values.

use serde::{Deserialize, Serialize};

/// Source of a timeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MemorySource {
    /// The allocator of this process: every block of every thread.
    HostAllocator,
    /// CUPTI: every block that the process allocates on a device; pages, for a runtime with a pool.
    Cupti,
    /// Statistics of a pool, sampled on request.
    PoolStatistics,
}

impl MemorySource {
    /// Name in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostAllocator => "host-allocator",
            Self::Cupti => "cupti",
            Self::PoolStatistics => "pool-statistics",
        }
    }

    /// Quantity that the events of this source add up to.
    pub(super) fn event_quantity(self) -> Option<Quantity> {
        match self {
            Self::HostAllocator => Some(Quantity::Allocated),
            Self::Cupti => Some(Quantity::Reserved),
            Self::PoolStatistics => None,
        }
    }
}

/// Measured quantity, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// Bytes requested and in use.
    Allocated,
    /// Bytes handed out by a pool, padding included.
    Active,
    /// Bytes reserved from the device, handed out or not.
    Reserved,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_name_matches_its_json() {
        for source in [MemorySource::HostAllocator, MemorySource::Cupti, MemorySource::PoolStatistics] {
            assert_eq!(serde_json::to_value(source).unwrap(), source.as_str());
        }
    }
}
