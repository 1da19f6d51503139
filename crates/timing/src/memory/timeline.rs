//! Memory over time, from one source.

use super::event::{AllocationTotals, LostEvents, MemoryEvent, PoolSample, TimelineMark};
use super::live::{LiveBlock, LiveBlocks};
use super::source::{MemorySource, Quantity};
use serde::{Deserialize, Serialize};

/// Peaks of a timeline. Values that the source does not report are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPeaks {
    /// See [`Quantity::Allocated`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<u64>,
    /// See [`Quantity::Active`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<u64>,
    /// See [`Quantity::Reserved`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<u64>,
    /// Certainty of the peaks.
    pub bound: TimelineBound,
}

/// Relation of a reported peak to the true one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimelineBound {
    /// Exact: no event is missing, or samples come within 1 % of the upper bound.
    #[default]
    Exact,
    /// Lower bound: samples may have missed the peak, or the last events are missing.
    AtLeast,
    /// Unknown: an unknown set of events is missing.
    Unknown,
}

/// Memory from a start to an end.
///
/// Blocks count from their allocation in the timeline. Blocks allocated before the start are in no value, not even as a
/// negative one when they are freed. A value is therefore the memory added since the start, by the whole process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Source of the values.
    pub source: MemorySource,
    /// Duration in nanoseconds.
    pub end_ns: u64,
    /// Allocations and frees in time order.
    pub events: Vec<MemoryEvent>,
    /// Samples of a pool in time order, including memory from before the start. They supply the quantities that the
    /// events do not.
    pub pools: Vec<PoolSample>,
    /// Upper bound of the bytes handed out by the pool, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
    /// Named moments.
    pub marks: Vec<TimelineMark>,
    /// Missing events.
    pub lost: Option<LostEvents>,
    /// Totals, independent of lost events.
    pub totals: Option<AllocationTotals>,
}

impl Timeline {
    /// Creates an empty timeline.
    pub fn new(source: MemorySource, end_ns: u64) -> Self {
        Self { source, end_ns, events: vec![], pools: vec![], ceiling: None, marks: vec![], lost: None, totals: None }
    }

    /// Steps of one quantity, as times and the values from there on. Empty if the source does not report it.
    pub fn steps(&self, quantity: Quantity) -> Vec<(u64, u64)> {
        if self.source.event_quantity() == Some(quantity) {
            return self.event_steps();
        }
        let value = |sample: &PoolSample| match quantity {
            Quantity::Allocated => sample.allocated,
            Quantity::Active => sample.active,
            Quantity::Reserved => sample.reserved,
        };
        self.pools.iter().map(|sample| (sample.at_ns, value(sample))).collect()
    }

    /// Steps of the events, one per moment, or two if the value was higher in between: a moved block is freed and
    /// allocated at one moment.
    fn event_steps(&self) -> Vec<(u64, u64)> {
        let mut live = LiveBlocks::default();
        let mut steps = vec![(0, 0)];
        for moment in self.events.chunk_by(|a, b| a.at_ns == b.at_ns) {
            let (at_ns, before) = (moment[0].at_ns, live.bytes);
            let highest = moment.iter().map(|event| {
                live.apply(event);
                live.bytes
            });
            let highest = highest.max().unwrap_or(before);
            if highest > before.max(live.bytes) {
                steps.push((at_ns, highest));
            }
            steps.push((at_ns, live.bytes));
        }
        steps
    }

    /// Peak of each quantity.
    pub fn peaks(&self) -> MemoryPeaks {
        let highest = |quantity| self.steps(quantity).into_iter().map(|(_, bytes)| bytes).max();
        let mut peaks = MemoryPeaks {
            allocated: highest(Quantity::Allocated),
            active: highest(Quantity::Active),
            reserved: highest(Quantity::Reserved),
            bound: self.peak_bound(),
        };
        if let (Some(_), Some(totals)) = (self.lost, self.totals) {
            // The peak above the start is a lower bound of the allocated bytes.
            peaks.allocated = peaks.allocated.max(Some(totals.peak_bytes));
        }
        peaks
    }

    fn peak_bound(&self) -> TimelineBound {
        match self.lost {
            Some(LostEvents { from_ns: None, .. }) => TimelineBound::Unknown,
            Some(_) => TimelineBound::AtLeast,
            None if self.pools.is_empty() || self.reaches_ceiling() => TimelineBound::Exact,
            None => TimelineBound::AtLeast,
        }
    }

    fn reaches_ceiling(&self) -> bool {
        let highest = self.pools.iter().map(|sample| sample.active).max();
        highest
            .zip(self.ceiling)
            .is_some_and(|(highest, ceiling)| (ceiling - ceiling / 100..=ceiling).contains(&highest))
    }

    /// Time of the first maximum of all blocks; without blocks, of the pool's allocated bytes.
    pub fn peak_at_ns(&self) -> Option<u64> {
        let steps = self.steps(self.source.event_quantity().unwrap_or(Quantity::Allocated));
        let highest = steps.iter().map(|&(_, bytes)| bytes).max()?;
        steps.into_iter().find(|&(_, bytes)| bytes == highest).map(|(at_ns, _)| at_ns)
    }

    /// Live blocks at a moment, the largest first. Empty if the source does not report blocks or has lost them.
    pub fn live_at(&self, at_ns: u64) -> Vec<LiveBlock> {
        if !self.has_blocks_at(at_ns) {
            return Vec::new();
        }
        LiveBlocks::from_events(self.events.iter().take_while(|event| event.at_ns <= at_ns)).blocks()
    }

    /// Bytes of freed blocks that were allocated before the start; they are in no other value.
    pub fn freed_older_bytes(&self) -> u64 {
        LiveBlocks::from_events(&self.events).freed_older_bytes
    }

    /// Notes for readers of the values.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![match self.source {
            MemorySource::HostAllocator => {
                "Memory requested by this process from its allocator since the start.".into()
            }
            MemorySource::Cupti => {
                "Memory allocated by this process on the device since the start: for a runtime with a \
                              pool, the pages of the pool, not the tensors in them."
                    .into()
            }
            MemorySource::PoolStatistics => "Statistics reported by the pool.".into(),
        }];
        if !self.pools.is_empty() {
            let samples = self.pools.len();
            let coverage = match self.ceiling {
                _ if self.reaches_ceiling() => "the highest is within 1 % of the upper bound.".into(),
                Some(ceiling) if self.peaks().active < Some(ceiling) => {
                    format!("peaks between samples are missed, up to {ceiling} bytes handed out.")
                }
                _ => "peaks between samples are missed.".into(),
            };
            notes.push(format!("{samples} samples of the pool: {coverage}"));
        }
        let before = self.freed_older_bytes();
        if before > 0 {
            notes.push(format!("{before} bytes allocated before the start were freed; they are not included."));
        }
        notes.extend(self.lost.map(|LostEvents { events, from_ns }| match from_ns {
            Some(_) => format!(
                "The last {events} events exceeded the buffer: the timeline ends early, and peaks are lower bounds."
            ),
            None => format!("Up to {events} events are missing, at unknown times: values may be wrong by them."),
        }));
        notes
    }

    pub(super) fn has_blocks_at(&self, at_ns: u64) -> bool {
        self.source.event_quantity().is_some() && !self.is_lost_at(at_ns)
    }

    pub(super) fn value_at(&self, quantity: Quantity, at_ns: u64) -> Option<u64> {
        if self.source.event_quantity() == Some(quantity) && self.is_lost_at(at_ns) {
            return None;
        }
        let steps = self.steps(quantity);
        let count = steps.partition_point(|&(step_ns, _)| step_ns <= at_ns);
        count.checked_sub(1).map(|last| steps[last].1)
    }

    fn is_lost_at(&self, at_ns: u64) -> bool {
        self.lost.and_then(|lost| lost.from_ns).is_some_and(|from_ns| from_ns <= at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn allocation(at_ns: u64, address: u64, bytes: u64) -> MemoryEvent {
        MemoryEvent { at_ns, address, bytes, freed: false, what: None }
    }

    fn free(at_ns: u64, address: u64, bytes: u64) -> MemoryEvent {
        MemoryEvent { freed: true, ..allocation(at_ns, address, bytes) }
    }

    fn host(events: Vec<MemoryEvent>) -> Timeline {
        Timeline { events, ..Timeline::new(MemorySource::HostAllocator, 1_000) }
    }

    fn live(timeline: &Timeline, at_ns: u64) -> Vec<(u64, u64, u64)> {
        timeline.live_at(at_ns).iter().map(|block| (block.address, block.bytes, block.since_ns)).collect()
    }

    #[test]
    fn peak_counts_overlapping_blocks() {
        let timeline = host(vec![
            allocation(10, 0xa, 100),
            allocation(20, 0xb, 50),
            free(30, 0xa, 100),
            allocation(40, 0xa, 90),
            allocation(50, 0xc, 30),
            free(60, 0xb, 50),
            free(70, 0xa, 90),
        ]);
        let steps = [(0, 0), (10, 100), (20, 150), (30, 50), (40, 140), (50, 170), (60, 120), (70, 30)];
        assert_eq!(timeline.steps(Quantity::Allocated), steps);
        assert_eq!(timeline.peaks(), MemoryPeaks { allocated: Some(170), ..MemoryPeaks::default() });
        assert_eq!(timeline.peak_at_ns(), Some(50));
        assert_eq!(live(&timeline, 20), [(0xa, 100, 10), (0xb, 50, 20)]);
        assert_eq!(live(&timeline, 55), [(0xa, 90, 40), (0xb, 50, 20), (0xc, 30, 50)]);
        assert_eq!(live(&timeline, 1_000), [(0xc, 30, 50)]);
    }

    #[test]
    fn moved_blocks_count_once() {
        let timeline = host(vec![
            allocation(10, 0xa, 100),
            free(20, 0xa, 100),
            allocation(20, 0xb, 160),
            free(30, 0xb, 160),
            allocation(30, 0xb, 40),
        ]);
        assert_eq!(timeline.steps(Quantity::Allocated), [(0, 0), (10, 100), (20, 160), (30, 40)]);
        assert_eq!(live(&timeline, 30), [(0xb, 40, 30)]);
    }

    #[test]
    fn short_lived_blocks_count_for_the_peak() {
        let timeline = host(vec![allocation(10, 0xa, 1), allocation(20, 0xb, 64), free(20, 0xb, 64)]);
        assert_eq!(timeline.steps(Quantity::Allocated), [(0, 0), (10, 1), (20, 65), (20, 1)]);
        assert_eq!(timeline.peaks().allocated, Some(65));
    }

    #[test]
    fn reused_address_belongs_to_the_new_block() {
        let timeline = host(vec![
            allocation(10, 0xa, 100),
            allocation(19, 0xa, 7), // reused by another thread
            free(20, 0xa, 100),
            allocation(20, 0xb, 200),
        ]);
        assert_eq!(live(&timeline, 20), [(0xb, 200, 20), (0xa, 7, 19)]);
    }

    #[test]
    fn freeing_older_blocks_is_reported_separately() {
        let timeline = host(vec![free(10, 0xe, 5_000), allocation(20, 0xa, 100), free(30, 0xf, 70)]);
        assert_eq!(timeline.steps(Quantity::Allocated), [(0, 0), (10, 0), (20, 100), (30, 100)]);
        assert_eq!(timeline.freed_older_bytes(), 5_070);
        assert!(timeline.notes()[1].contains("5070"));
    }

    #[test]
    fn sources_report_only_their_quantities() {
        let events = vec![allocation(10, 0xa, 100)];
        let pools = vec![PoolSample { at_ns: 10, allocated: 7, active: 8, reserved: 64 }];
        let empty = MemoryPeaks::default();
        let cases = [
            (MemorySource::HostAllocator, true, false, MemoryPeaks { allocated: Some(100), ..empty }),
            (MemorySource::HostAllocator, false, false, MemoryPeaks { allocated: Some(0), ..empty }),
            (MemorySource::Cupti, true, false, MemoryPeaks { reserved: Some(100), ..empty }),
            (MemorySource::PoolStatistics, false, false, empty),
            (
                MemorySource::PoolStatistics,
                false,
                true,
                MemoryPeaks { allocated: Some(7), active: Some(8), reserved: Some(64), bound: TimelineBound::AtLeast },
            ),
            (
                MemorySource::Cupti,
                true,
                true,
                MemoryPeaks { allocated: Some(7), active: Some(8), reserved: Some(100), bound: TimelineBound::AtLeast },
            ),
        ];
        for (source, has_events, has_pools, peaks) in cases {
            let mut timeline = Timeline::new(source, 1_000);
            timeline.events = if has_events { events.clone() } else { vec![] };
            timeline.pools = if has_pools { pools.clone() } else { vec![] };
            assert_eq!(timeline.peaks(), peaks, "{timeline:?}");
        }
    }

    #[test]
    fn samples_are_lower_bounds_below_the_ceiling() {
        let pools = vec![PoolSample { at_ns: 10, allocated: 700, active: 800, reserved: 6400 }];
        let sampled = Timeline { pools, ..Timeline::new(MemorySource::PoolStatistics, 1_000) };
        for (ceiling, bound) in [
            (None, TimelineBound::AtLeast),
            (Some(809), TimelineBound::AtLeast),
            (Some(808), TimelineBound::Exact),
            (Some(800), TimelineBound::Exact),
            // An exceeded ceiling is no upper bound.
            (Some(799), TimelineBound::AtLeast),
        ] {
            let timeline = Timeline { ceiling, ..sampled.clone() };
            assert_eq!(timeline.peaks().bound, bound);
            assert_eq!(timeline.notes()[1].contains("809"), ceiling == Some(809), "{:?}", timeline.notes());
        }
    }

    #[test]
    fn lost_events_turn_peaks_into_bounds() {
        let mut timeline = host(vec![allocation(10, 0xa, 100), free(20, 0xa, 100)]);
        timeline.lost = Some(LostEvents { events: 9, from_ns: Some(25) });
        timeline.totals = Some(AllocationTotals { change_bytes: -3, peak_bytes: 400 });
        assert_eq!(
            timeline.peaks(),
            MemoryPeaks { allocated: Some(400), bound: TimelineBound::AtLeast, ..MemoryPeaks::default() }
        );
        let (before, after) = (timeline.snapshot(24), timeline.snapshot(25));
        assert_eq!((before.allocated_bytes, before.live_blocks), (Some(0), Some(0)));
        assert_eq!((after.allocated_bytes, after.live_blocks, after.lost_events), (None, None, 9));
        assert_eq!(timeline.live_at(25), []);
        assert!(timeline.notes()[1].contains(" 9 "), "{:?}", timeline.notes());

        timeline.totals = Some(AllocationTotals { change_bytes: 0, peak_bytes: 60 });
        assert_eq!(timeline.peaks().allocated, Some(100));
    }

    proptest! {
        #[test]
        fn the_steps_are_the_sums_of_the_blocks(script in prop::collection::vec((0_u64..8, 1_u64..1_000), 0..60)) {
            // Each entry allocates an address if it is free, and frees it otherwise.
            let mut held: Vec<(u64, u64)> = Vec::new();
            let (mut events, mut sums) = (Vec::new(), vec![(0, 0)]);
            for (at_ns, (address, bytes)) in (1..).zip(script) {
                match held.iter().position(|&(taken, _)| taken == address) {
                    Some(index) => events.push(free(at_ns, address, held.swap_remove(index).1)),
                    None => {
                        held.push((address, bytes));
                        events.push(allocation(at_ns, address, bytes));
                    }
                }
                sums.push((at_ns, held.iter().map(|&(_, bytes)| bytes).sum::<u64>()));
            }
            let timeline = host(events);
            prop_assert_eq!(timeline.steps(Quantity::Allocated), sums.clone());
            prop_assert_eq!(timeline.peaks().allocated, sums.iter().map(|&(_, bytes)| bytes).max());
            for (at_ns, sum) in sums {
                prop_assert_eq!(timeline.live_at(at_ns).iter().map(|block| block.bytes).sum::<u64>(), sum);
                prop_assert_eq!(timeline.snapshot(at_ns).allocated_bytes, Some(sum));
            }
        }
    }
}
