//! Which blocks are there, one event after the other.

use super::event::MemoryEvent;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Memory that was allocated and not freed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Where it begins.
    pub address: u64,
    /// How large it is.
    pub bytes: u64,
    /// When it was allocated.
    pub since_ns: u64,
    /// What it is for, where the source tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// The blocks that events have allocated and not freed.
#[derive(Default)]
pub struct Live<'a> {
    /// In the order of their allocation. Two blocks share an address only for the moment in which one thread gets what
    /// another has just given back by moving its block, and tells it first: the older one is then the next to go.
    by_address: HashMap<u64, Vec<&'a MemoryEvent>>,
    /// Their sum.
    pub bytes: u64,
    /// Bytes freed that no event allocated: blocks from before the first event.
    pub freed_from_before: u64,
}

impl<'a> Live<'a> {
    /// After all of the events.
    pub fn after(events: impl IntoIterator<Item = &'a MemoryEvent>) -> Self {
        let mut live = Self::default();
        events.into_iter().for_each(|event| live.apply(event));
        live
    }

    pub fn apply(&mut self, event: &'a MemoryEvent) {
        if !event.freed {
            self.by_address.entry(event.address).or_default().push(event);
            self.bytes += event.bytes;
            return;
        }
        let Some(blocks) = self.by_address.get_mut(&event.address) else {
            self.freed_from_before += event.bytes;
            return;
        };
        self.bytes -= blocks.remove(0).bytes;
        if blocks.is_empty() {
            self.by_address.remove(&event.address);
        }
    }

    /// The largest first, the oldest of equals first.
    pub fn blocks(self) -> Vec<Block> {
        let mut blocks: Vec<Block> = self.by_address.into_values().flatten().map(block).collect();
        blocks.sort_unstable_by_key(|block| (std::cmp::Reverse(block.bytes), block.since_ns, block.address));
        blocks
    }
}

fn block(event: &MemoryEvent) -> Block {
    Block { address: event.address, bytes: event.bytes, since_ns: event.at_ns, what: event.what.clone() }
}
