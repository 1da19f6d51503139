//! Ledger of all allocations of a recording, in preallocated memory: recording neither allocates nor locks.

use super::event::{Lost, MemoryEvent, Totals};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Words per slot: time, address, and twice the size plus one for a free. Unused slots have address zero.
const WORDS: usize = 3;

pub struct Ledger {
    start: Instant,
    words: Box<[AtomicU64]>,
    /// Slots assigned so far, including those beyond the capacity.
    slots: AtomicUsize,
    first_lost_ns: AtomicU64,
    change: AtomicI64,
    peak: AtomicI64,
}

#[derive(Clone, Copy)]
struct Entry {
    address: u64,
    bytes: usize,
    freed: bool,
}

impl Ledger {
    pub fn with_room_for(events: usize) -> Self {
        Self {
            start: Instant::now(),
            words: zeros(WORDS * events),
            slots: AtomicUsize::new(0),
            first_lost_ns: AtomicU64::new(u64::MAX),
            change: AtomicI64::new(0),
            peak: AtomicI64::new(0),
        }
    }

    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    pub fn allocated(&self, address: u64, bytes: usize) {
        self.enter(bytes as i64, [Entry { address, bytes, freed: false }]);
    }

    pub fn freed(&self, address: u64, bytes: usize) {
        self.enter(-(bytes as i64), [Entry { address, bytes, freed: true }]);
    }

    /// Records a reallocation as one step of the totals, so that a growing block is never missing in between.
    pub fn moved(&self, from: (u64, usize), to: (u64, usize)) {
        let change = to.1 as i64 - from.1 as i64;
        let entry = |(address, bytes), freed| Entry { address, bytes, freed };
        self.enter(change, [entry(from, true), entry(to, false)]);
    }

    fn enter<const N: usize>(&self, change: i64, entries: [Entry; N]) {
        let now = self.change.fetch_add(change, Ordering::Relaxed) + change;
        self.peak.fetch_max(now, Ordering::Relaxed);
        let at_ns = self.now_ns();
        let first = self.slots.fetch_add(N, Ordering::Relaxed);
        match self.words.get(WORDS * first..WORDS * (first + N)) {
            Some(words) => {
                for (slot, entry) in words.chunks_exact(WORDS).zip(entries) {
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

    pub fn is_empty(&self) -> bool {
        self.slots.load(Ordering::Relaxed) == 0
    }

    pub fn totals(&self) -> Totals {
        Totals {
            change_bytes: self.change.load(Ordering::Relaxed),
            peak_bytes: self.peak.load(Ordering::Relaxed).unsigned_abs(),
        }
    }

    /// Events in time order, complete up to the first that exceeded the capacity, and the number missing from there on.
    pub fn events(&self) -> (Vec<MemoryEvent>, Option<Lost>) {
        let slots = self.slots.load(Ordering::Relaxed);
        let from_ns = self.first_lost_ns.load(Ordering::Relaxed);
        let mut events: Vec<MemoryEvent> =
            self.words.chunks_exact(WORDS).take(slots).filter_map(read).filter(|event| event.at_ns < from_ns).collect();
        // Stable sort: events of one nanosecond retain the order of their slots.
        events.sort_by_key(|event| event.at_ns);
        let missing = (slots - events.len()) as u64;
        (events, (missing > 0).then_some(Lost { events: missing, from_ns: Some(from_ns) }))
    }
}

fn read(slot: &[AtomicU64]) -> Option<MemoryEvent> {
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
    fn what_finds_no_room_is_counted_and_the_totals_stay_exact() {
        let ledger = Ledger::with_room_for(4);
        ledger.allocated(0x10, 100);
        ledger.allocated(0x20, 50);
        ledger.freed(0x20, 50);
        thread::sleep(Duration::from_millis(1)); // on a coarse clock the loss would coincide with other events
        // Needs two slots but only one is free, so the whole move is lost.
        ledger.moved((0x10, 100), (0x30, 400));
        ledger.allocated(0x40, 7);
        ledger.freed(0x30, 400);
        let (events, lost) = ledger.events();
        assert_eq!(
            events.iter().map(|e| (e.address, e.bytes, e.freed)).collect::<Vec<_>>(),
            [(0x10, 100, false), (0x20, 50, false), (0x20, 50, true)]
        );
        let lost = lost.unwrap();
        assert_eq!(lost.events, 4);
        assert!(lost.from_ns.unwrap() > events[2].at_ns);
        assert_eq!(ledger.totals(), Totals { change_bytes: 7, peak_bytes: 407 });
    }

    #[test]
    fn blocks_from_before_bring_the_change_below_zero_and_the_peak_not() {
        let ledger = Ledger::with_room_for(8);
        ledger.freed(0x10, 1000);
        ledger.allocated(0x20, 300);
        assert_eq!(ledger.totals(), Totals { change_bytes: -700, peak_bytes: 0 });
    }

    #[test]
    fn events_of_many_threads_are_all_there_and_in_order_of_time() {
        const EACH: u64 = 10_000;
        let ledger = Ledger::with_room_for(8 * EACH as usize);
        thread::scope(|scope| {
            for thread in 1..=4_u64 {
                let ledger = &ledger;
                scope.spawn(move || {
                    for index in 0..EACH {
                        let address = thread << 32 | index;
                        ledger.allocated(address, 64);
                        ledger.freed(address, 64);
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
