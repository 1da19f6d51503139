//! Who tells of memory, and of what.

use serde::{Deserialize, Serialize};

/// Who says how much memory there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Source {
    /// The process's own allocator: every block of every thread.
    HostAllocator,
    /// NVIDIA's profiling interface: every block that the process takes of a device. A runtime with a pool takes pages.
    Cupti,
    /// What a pool says of itself whenever it is asked.
    PoolStatistics,
}

impl Source {
    /// The word used in the JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HostAllocator => "host-allocator",
            Self::Cupti => "cupti",
            Self::PoolStatistics => "pool-statistics",
        }
    }

    /// What the sum of the source's blocks is.
    pub(super) fn told_by_events(self) -> Option<Quantity> {
        match self {
            Self::HostAllocator => Some(Quantity::Allocated),
            Self::Cupti => Some(Quantity::Reserved),
            Self::PoolStatistics => None,
        }
    }
}

/// What is counted, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Quantity {
    /// What was asked for and is in use.
    Allocated,
    /// What a pool has handed out for it, padding included.
    Active,
    /// What is held of the device, handed out or not.
    Reserved,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_source_is_the_one_in_its_json() {
        for source in [Source::HostAllocator, Source::Cupti, Source::PoolStatistics] {
            assert_eq!(serde_json::to_value(source).unwrap(), source.as_str());
        }
    }
}
