//! Snapshots of memory at one moment, for JSON.

use super::live::LiveBlock;
use super::source::{MemorySource, Quantity};
use super::timeline::Timeline;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of listed blocks.
const MAX_LISTED_BLOCKS: usize = 64;

/// Memory at one moment. Values that the source does not report, or has lost, are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// Nanoseconds since the start of the timeline.
    pub taken_at_ns: u64,
    /// Source of the values.
    pub source: MemorySource,
    /// See [`Quantity::Allocated`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_bytes: Option<u64>,
    /// See [`Quantity::Active`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_bytes: Option<u64>,
    /// See [`Quantity::Reserved`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_bytes: Option<u64>,
    /// Number of live blocks; absent if the source does not report blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_blocks: Option<u64>,
    /// Largest live blocks, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<LiveBlock>,
    /// Live blocks by size class, the smallest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub size_classes: Vec<SizeClass>,
    /// Events missing in the timeline. If their time is unknown, the values above may be wrong by them.
    #[serde(default, skip_serializing_if = "no_events")]
    pub lost_events: u64,
}

/// Live blocks with sizes above half of a power of two and up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SizeClass {
    /// Upper bound, a power of two.
    pub up_to_bytes: u64,
    /// Number of blocks.
    pub blocks: u64,
    /// Total size.
    pub bytes: u64,
}

impl Timeline {
    /// Memory at a moment, such as a [`TimelineMark`](super::TimelineMark).
    pub fn snapshot(&self, at_ns: u64) -> Snapshot {
        let mut largest = self.live_at(at_ns);
        let live_blocks = self.has_blocks_at(at_ns).then_some(largest.len() as u64);
        let size_classes = size_classes(&largest);
        largest.truncate(MAX_LISTED_BLOCKS);
        Snapshot {
            taken_at_ns: at_ns,
            source: self.source,
            allocated_bytes: self.value_at(Quantity::Allocated, at_ns),
            active_bytes: self.value_at(Quantity::Active, at_ns),
            reserved_bytes: self.value_at(Quantity::Reserved, at_ns),
            live_blocks,
            largest,
            size_classes,
            lost_events: self.lost.map_or(0, |lost| lost.events),
        }
    }
}

fn size_classes(blocks: &[LiveBlock]) -> Vec<SizeClass> {
    let mut classes: BTreeMap<u64, SizeClass> = BTreeMap::new();
    for block in blocks {
        let up_to_bytes = block.bytes.checked_next_power_of_two().unwrap_or(u64::MAX);
        let class = classes.entry(up_to_bytes).or_insert(SizeClass { up_to_bytes, blocks: 0, bytes: 0 });
        class.blocks += 1;
        class.bytes += block.bytes;
    }
    classes.into_values().collect()
}

fn no_events(lost: &u64) -> bool {
    *lost == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{LostEvents, MemoryEvent, PoolSample};

    fn allocation(at_ns: u64, address: u64, bytes: u64) -> MemoryEvent {
        MemoryEvent { at_ns, address, bytes, freed: false, what: None }
    }

    #[test]
    fn snapshot_lists_the_largest_blocks() {
        let events = (1..=100).map(|index| allocation(index, index << 12, index)).collect();
        let snapshot = Timeline { events, ..Timeline::new(MemorySource::HostAllocator, 200) }.snapshot(200);
        assert_eq!((snapshot.allocated_bytes, snapshot.live_blocks), (Some(5050), Some(100)));
        assert_eq!((snapshot.active_bytes, snapshot.reserved_bytes), (None, None));
        assert_eq!(snapshot.largest.len(), 64);
        assert_eq!((snapshot.largest[0].bytes, snapshot.largest[63].bytes), (100, 37));
        let class = |up_to_bytes, blocks, bytes| SizeClass { up_to_bytes, blocks, bytes };
        assert_eq!(
            snapshot.size_classes,
            [
                class(1, 1, 1),
                class(2, 1, 2),
                class(4, 2, 7),
                class(8, 4, 26),
                class(16, 8, 100),
                class(32, 16, 392),
                class(64, 32, 1552),
                class(128, 36, 2970),
            ]
        );
    }

    #[test]
    fn json_omits_unknown_values() {
        let pools = vec![PoolSample { at_ns: 5, allocated: 1, active: 2, reserved: 3 }];
        let pool = Timeline { pools, ..Timeline::new(MemorySource::PoolStatistics, 9) };
        let json = |at_ns| serde_json::to_string(&pool.snapshot(at_ns)).unwrap();
        assert_eq!(json(4), r#"{"taken_at_ns":4,"source":"pool-statistics"}"#);
        assert_eq!(
            json(7),
            r#"{"taken_at_ns":7,"source":"pool-statistics","allocated_bytes":1,"active_bytes":2,"reserved_bytes":3}"#
        );
        let mut device = Timeline::new(MemorySource::Cupti, 9);
        device.events = vec![MemoryEvent { what: Some("managed".into()), ..allocation(3, 0x40, 1 << 63 | 1) }];
        device.lost = Some(LostEvents { events: 2, from_ns: None });
        let snapshot = device.snapshot(3);
        assert_eq!((snapshot.allocated_bytes, snapshot.reserved_bytes), (None, Some(1 << 63 | 1)));
        assert_eq!((snapshot.lost_events, snapshot.size_classes[0].up_to_bytes), (2, u64::MAX));
        let back: Snapshot = serde_json::from_str(&serde_json::to_string(&snapshot).unwrap()).unwrap();
        assert_eq!(back, snapshot);
    }
}
