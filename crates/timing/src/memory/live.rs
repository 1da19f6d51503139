//! Live blocks while events are replayed.

use super::event::MemoryEvent;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Block that was allocated and not freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveBlock {
    /// Start address.
    pub address: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the allocation in nanoseconds.
    pub since_ns: u64,
    /// Purpose of the block, if the source reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// Blocks that were allocated and not freed.
#[derive(Default)]
pub(super) struct LiveBlocks<'a> {
    /// Blocks by address, in allocation order. Two blocks share an address only briefly, if a thread reuses an address
    /// that another has just released by moving its block, and records it first. The older block is then freed first.
    by_address: HashMap<u64, Vec<&'a MemoryEvent>>,
    /// Total size.
    pub bytes: u64,
    /// Bytes of freed blocks that were allocated before the first event.
    pub freed_older_bytes: u64,
}

impl<'a> LiveBlocks<'a> {
    /// Replays all events.
    pub(super) fn from_events(events: impl IntoIterator<Item = &'a MemoryEvent>) -> Self {
        let mut live = Self::default();
        events.into_iter().for_each(|event| live.apply(event));
        live
    }

    pub(super) fn apply(&mut self, event: &'a MemoryEvent) {
        if !event.freed {
            self.by_address.entry(event.address).or_default().push(event);
            self.bytes += event.bytes;
            return;
        }
        let Some(blocks) = self.by_address.get_mut(&event.address) else {
            self.freed_older_bytes += event.bytes;
            return;
        };
        self.bytes -= blocks.remove(0).bytes;
        if blocks.is_empty() {
            self.by_address.remove(&event.address);
        }
    }

    /// Live blocks, the largest first, the oldest first among equal sizes.
    pub(super) fn blocks(self) -> Vec<LiveBlock> {
        let mut blocks: Vec<LiveBlock> = self.by_address.into_values().flatten().map(block).collect();
        blocks.sort_unstable_by_key(|block| (std::cmp::Reverse(block.bytes), block.since_ns, block.address));
        blocks
    }
}

fn block(event: &MemoryEvent) -> LiveBlock {
    LiveBlock { address: event.address, bytes: event.bytes, since_ns: event.at_ns, what: event.what.clone() }
}
