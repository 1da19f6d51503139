//! Ledger of all allocations of a recording, in preallocated memory: recording neither allocates nor locks.

use super::event::{AllocationTotals, LostEvents, MemoryEvent};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Words per slot: time, address, and twice the size plus one for a free. Unused slots have address zero.
const WORDS_PER_SLOT: usize = 3;

pub(super) struct Ledger {
    start: Instant,
    words: Box<[AtomicU64]>,
    /// Slots assigned so far, including those beyond the capacity.
    slots: AtomicUsize,
    first_lost_ns: AtomicU64,
    change: AtomicI64,
    peak: AtomicI64,
}

#[derive(Clone, Copy)]
struct LedgerEntry {
    address: u64,
    bytes: usize,
    freed: bool,
}

impl Ledger {
    pub(super) fn with_capacity(events: usize) -> Self {
        Self {
            start: Instant::now(),
            words: zeros(WORDS_PER_SLOT * events),
            slots: AtomicUsize::new(0),
            first_lost_ns: AtomicU64::new(u64::MAX),
            change: AtomicI64::new(0),
            peak: AtomicI64::new(0),
        }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    pub(super) fn record_allocation(&self, address: u64, bytes: usize) {
        self.record(bytes as i64, [LedgerEntry { address, bytes, freed: false }]);
    }

    pub(super) fn record_free(&self, address: u64, bytes: usize) {
        self.record(-(bytes as i64), [LedgerEntry { address, bytes, freed: true }]);
    }

    /// Records a reallocation as one step of the totals, so that a growing block is never missing in between.
    pub(super) fn record_move(&self, from: (u64, usize), to: (u64, usize)) {
        let change = to.1 as i64 - from.1 as i64;
        let entry = |(address, bytes), freed| LedgerEntry { address, bytes, freed };
        self.record(change, [entry(from, true), entry(to, false)]);
    }

    fn record<const N: usize>(&self, change: i64, entries: [LedgerEntry; N]) {
        let now = self.change.fetch_add(change, Ordering::Relaxed) + change;
        self.peak.fetch_max(now, Ordering::Relaxed);
        let at_ns = self.now_ns();
        let first = self.slots.fetch_add(N, Ordering::Relaxed);
        match self.words.get(WORDS_PER_SLOT * first..WORDS_PER_SLOT * (first + N)) {
            Some(words) => {
                for (slot, entry) in words.chunks_exact(WORDS_PER_SLOT).zip(entries) {
                    slot[0].store(at_ns, Ordering::Relaxed);
                    slot[1].store(entry.address, Ordering::Relaxed);
                    slot[2].store((entry.bytes as u64) << 1 | u64::from(entry.freed), Ordering::Relaxed);
                }
            }
            None => {
                self.first_lost_ns.fetch_min(at_ns, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.load(Ordering::Relaxed) == 0
    }

    pub(super) fn totals(&self) -> AllocationTotals {
        AllocationTotals {
            change_bytes: self.change.load(Ordering::Relaxed),
            peak_bytes: self.peak.load(Ordering::Relaxed).unsigned_abs(),
        }
    }

    /// Events in time order, complete up to the first that exceeded the capacity, and the number missing from there on.
    pub(super) fn events(&self) -> (Vec<MemoryEvent>, Option<LostEvents>) {
        let slots = self.slots.load(Ordering::Relaxed);
        let from_ns = self.first_lost_ns.load(Ordering::Relaxed);
        let mut events: Vec<MemoryEvent> = self
            .words
            .chunks_exact(WORDS_PER_SLOT)
            .take(slots)
            .filter_map(read_slot)
            .filter(|event| event.at_ns < from_ns)
            .collect();
        // Stable sort: events of one nanosecond retain the order of their slots.
        events.sort_by_key(|event| event.at_ns);
        let missing = (slots - events.len()) as u64;
        (events, (missing > 0).then_some(LostEvents { events: missing, from_ns: Some(from_ns) }))
    }
}

fn read_slot(slot: &[AtomicU64]) -> Option<MemoryEvent> {
    let [at_ns, address, size] = [0, 1, 2].map(|word: usize| slot[word].load(Ordering::Relaxed));
    let event = MemoryEvent { at_ns, address, bytes: size >> 1, freed: size & 1 == 1, what: None };
    (address > 0).then_some(event)
}

/// Zeroed memory from the system, whose pages are materialized on first write.
fn zeros(words: usize) -> Box<[AtomicU64]> {
    let zeros = Box::into_raw(vec![0_u64; words].into_boxed_slice());
    const { assert!(align_of::<u64>() == align_of::<AtomicU64>()) };
    // SAFETY: an `AtomicU64` has the size and validity of a `u64`; both are parts of one boxed allocation.
    unsafe { Box::from_raw(zeros as *mut [AtomicU64]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn overflow_is_counted_and_totals_are_exact() {
        let ledger = Ledger::with_capacity(4);
        ledger.record_allocation(0x10, 100);
        ledger.record_allocation(0x20, 50);
        ledger.record_free(0x20, 50);
        thread::sleep(Duration::from_millis(1)); // on a coarse clock the loss would coincide with other events
        // Needs two slots but only one is free, so the whole move is lost.
        ledger.record_move((0x10, 100), (0x30, 400));
        ledger.record_allocation(0x40, 7);
        ledger.record_free(0x30, 400);
        let (events, lost) = ledger.events();
        assert_eq!(
            events.iter().map(|e| (e.address, e.bytes, e.freed)).collect::<Vec<_>>(),
            [(0x10, 100, false), (0x20, 50, false), (0x20, 50, true)]
        );
        let lost = lost.unwrap();
        assert_eq!(lost.events, 4);
        assert!(lost.from_ns.unwrap() > events[2].at_ns);
        assert_eq!(ledger.totals(), AllocationTotals { change_bytes: 7, peak_bytes: 407 });
    }

    #[test]
    fn freeing_older_blocks_keeps_peak_nonnegative() {
        let ledger = Ledger::with_capacity(8);
        ledger.record_free(0x10, 1000);
        ledger.record_allocation(0x20, 300);
        assert_eq!(ledger.totals(), AllocationTotals { change_bytes: -700, peak_bytes: 0 });
    }

    #[test]
    fn concurrent_events_are_complete_and_ordered() {
        const EACH: u64 = 10_000;
        let ledger = Ledger::with_capacity(8 * EACH as usize);
        thread::scope(|scope| {
            for thread in 1..=4_u64 {
                let ledger = &ledger;
                scope.spawn(move || {
                    for index in 0..EACH {
                        let address = thread << 32 | index;
                        ledger.record_allocation(address, 64);
                        ledger.record_free(address, 64);
                    }
                });
            }
        });
        let (events, lost) = ledger.events();
        assert_eq!((events.len() as u64, lost), (8 * EACH, None));
        assert!(events.is_sorted_by_key(|event| event.at_ns));
        let totals = ledger.totals();
        assert_eq!(totals.change_bytes, 0);
        assert!((64..=256).contains(&totals.peak_bytes), "{totals:?}");
    }
}
