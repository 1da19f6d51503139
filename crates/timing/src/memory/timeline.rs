//! Memory over time, from one source.

use super::event::{Lost, Mark, MemoryEvent, PoolSample, Totals};
use super::live::{Block, Live};
use super::source::{Quantity, Source};
use serde::{Deserialize, Serialize};

/// Peaks of a timeline. Values that the source does not report are absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peaks {
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
    pub bound: Bound,
}

/// Relation of a reported peak to the true one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
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
    pub source: Source,
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
    pub marks: Vec<Mark>,
    /// Missing events.
    pub lost: Option<Lost>,
    /// Totals, independent of lost events.
    pub totals: Option<Totals>,
}

impl Timeline {
    /// Creates an empty timeline.
    pub fn new(source: Source, end_ns: u64) -> Self {
        Self { source, end_ns, events: vec![], pools: vec![], ceiling: None, marks: vec![], lost: None, totals: None }
    }

    /// Steps of one quantity, as times and the values from there on. Empty if the source does not report it.
    pub fn steps(&self, quantity: Quantity) -> Vec<(u64, u64)> {
        if self.source.told_by_events() == Some(quantity) {
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
        let mut live = Live::default();
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
    pub fn peaks(&self) -> Peaks {
        let highest = |quantity| self.steps(quantity).into_iter().map(|(_, bytes)| bytes).max();
        let mut peaks = Peaks {
            allocated: highest(Quantity::Allocated),
            active: highest(Quantity::Active),
            reserved: highest(Quantity::Reserved),
            bound: self.bound(),
        };
        if let (Some(_), Some(totals)) = (self.lost, self.totals) {
            // The peak above the start is a lower bound of the allocated bytes.
            peaks.allocated = peaks.allocated.max(Some(totals.peak_bytes));
        }
        peaks
    }

    fn bound(&self) -> Bound {
        match self.lost {
            Some(Lost { from_ns: None, .. }) => Bound::Unknown,
            Some(_) => Bound::AtLeast,
            None if self.pools.is_empty() || self.reaches_its_ceiling() => Bound::Exact,
            None => Bound::AtLeast,
        }
    }

    fn reaches_its_ceiling(&self) -> bool {
        let highest = self.pools.iter().map(|sample| sample.active).max();
        highest
            .zip(self.ceiling)
            .is_some_and(|(highest, ceiling)| (ceiling - ceiling / 100..=ceiling).contains(&highest))
    }

    /// Time of the first maximum of all blocks; without blocks, of the pool's allocated bytes.
    pub fn peak_at_ns(&self) -> Option<u64> {
        let steps = self.steps(self.source.told_by_events().unwrap_or(Quantity::Allocated));
        let highest = steps.iter().map(|&(_, bytes)| bytes).max()?;
        steps.into_iter().find(|&(_, bytes)| bytes == highest).map(|(at_ns, _)| at_ns)
    }

    /// Live blocks at a moment, the largest first. Empty if the source does not report blocks or has lost them.
    pub fn live_at(&self, at_ns: u64) -> Vec<Block> {
        if !self.tells_blocks_at(at_ns) {
            return Vec::new();
        }
        Live::after(self.events.iter().take_while(|event| event.at_ns <= at_ns)).blocks()
    }

    /// Bytes of freed blocks that were allocated before the start; they are in no other value.
    pub fn freed_from_before(&self) -> u64 {
        Live::after(&self.events).freed_from_before
    }

    /// Notes for readers of the values.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![match self.source {
            Source::HostAllocator => "Memory requested by this process from its allocator since the start.".into(),
            Source::Cupti => "Memory allocated by this process on the device since the start: for a runtime with a \
                              pool, the pages of the pool, not the tensors in them."
                .into(),
            Source::PoolStatistics => "Statistics reported by the pool.".into(),
        }];
        if !self.pools.is_empty() {
            let samples = self.pools.len();
            let coverage = match self.ceiling {
                _ if self.reaches_its_ceiling() => "the highest is within 1 % of the upper bound.".into(),
                Some(ceiling) if self.peaks().active < Some(ceiling) => {
                    format!("peaks between samples are missed, up to {ceiling} bytes handed out.")
                }
                _ => "peaks between samples are missed.".into(),
            };
            notes.push(format!("{samples} samples of the pool: {coverage}"));
        }
        let before = self.freed_from_before();
        if before > 0 {
            notes.push(format!("{before} bytes allocated before the start were freed; they are not included."));
        }
        notes.extend(self.lost.map(|Lost { events, from_ns }| match from_ns {
            Some(_) => format!(
                "The last {events} events exceeded the buffer: the timeline ends early, and peaks are lower bounds."
            ),
            None => format!("Up to {events} events are missing, at unknown times: values may be wrong by them."),
        }));
        notes
    }

    pub(super) fn tells_blocks_at(&self, at_ns: u64) -> bool {
        self.source.told_by_events().is_some() && !self.is_lost_at(at_ns)
    }

    pub(super) fn value_at(&self, quantity: Quantity, at_ns: u64) -> Option<u64> {
        if self.source.told_by_events() == Some(quantity) && self.is_lost_at(at_ns) {
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
        Timeline { events, ..Timeline::new(Source::HostAllocator, 1_000) }
    }

    fn live(timeline: &Timeline, at_ns: u64) -> Vec<(u64, u64, u64)> {
        timeline.live_at(at_ns).iter().map(|block| (block.address, block.bytes, block.since_ns)).collect()
    }

    #[test]
    fn the_peak_is_where_blocks_overlap_and_an_address_is_used_again() {
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
        assert_eq!(timeline.peaks(), Peaks { allocated: Some(170), ..Peaks::default() });
        assert_eq!(timeline.peak_at_ns(), Some(50));
        assert_eq!(live(&timeline, 20), [(0xa, 100, 10), (0xb, 50, 20)]);
        assert_eq!(live(&timeline, 55), [(0xa, 90, 40), (0xb, 50, 20), (0xc, 30, 50)]);
        assert_eq!(live(&timeline, 1_000), [(0xc, 30, 50)]);
    }

    #[test]
    fn a_block_that_moves_is_never_missing_nor_there_twice() {
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
    fn a_block_that_comes_and_goes_within_a_nanosecond_counts_for_the_peak() {
        let timeline = host(vec![allocation(10, 0xa, 1), allocation(20, 0xb, 64), free(20, 0xb, 64)]);
        assert_eq!(timeline.steps(Quantity::Allocated), [(0, 0), (10, 1), (20, 65), (20, 1)]);
        assert_eq!(timeline.peaks().allocated, Some(65));
    }

    #[test]
    fn an_address_taken_before_its_move_was_told_belongs_to_its_new_owner_afterwards() {
        let timeline = host(vec![
            allocation(10, 0xa, 100),
            allocation(19, 0xa, 7), // reused by another thread
            free(20, 0xa, 100),
            allocation(20, 0xb, 200),
        ]);
        assert_eq!(live(&timeline, 20), [(0xb, 200, 20), (0xa, 7, 19)]);
    }

    #[test]
    fn what_lived_before_the_start_is_told_and_never_makes_a_figure_smaller() {
        let timeline = host(vec![free(10, 0xe, 5_000), allocation(20, 0xa, 100), free(30, 0xf, 70)]);
        assert_eq!(timeline.steps(Quantity::Allocated), [(0, 0), (10, 0), (20, 100), (30, 100)]);
        assert_eq!(timeline.freed_from_before(), 5_070);
        assert!(timeline.notes()[1].starts_with("5070 bytes allocated before the start were freed"));
    }

    #[test]
    fn a_source_answers_only_what_it_can_tell() {
        let events = vec![allocation(10, 0xa, 100)];
        let pools = vec![PoolSample { at_ns: 10, allocated: 7, active: 8, reserved: 64 }];
        let empty = Peaks::default();
        let cases = [
            (Source::HostAllocator, true, false, Peaks { allocated: Some(100), ..empty }),
            (Source::HostAllocator, false, false, Peaks { allocated: Some(0), ..empty }),
            (Source::Cupti, true, false, Peaks { reserved: Some(100), ..empty }),
            (Source::PoolStatistics, false, false, empty),
            (
                Source::PoolStatistics,
                false,
                true,
                Peaks { allocated: Some(7), active: Some(8), reserved: Some(64), bound: Bound::AtLeast },
            ),
            (
                Source::Cupti,
                true,
                true,
                Peaks { allocated: Some(7), active: Some(8), reserved: Some(100), bound: Bound::AtLeast },
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
    fn samples_are_a_lower_bound_until_they_reach_what_there_can_be_at_most() {
        let pools = vec![PoolSample { at_ns: 10, allocated: 700, active: 800, reserved: 6400 }];
        let sampled = Timeline { pools, ..Timeline::new(Source::PoolStatistics, 1_000) };
        for (ceiling, bound, note) in [
            (None, Bound::AtLeast, "peaks between samples are missed."),
            (Some(809), Bound::AtLeast, "peaks between samples are missed, up to 809 bytes handed out."),
            (Some(808), Bound::Exact, "the highest is within 1 % of the upper bound."),
            (Some(800), Bound::Exact, "the highest is within 1 % of the upper bound."),
            // An exceeded ceiling is no upper bound.
            (Some(799), Bound::AtLeast, "peaks between samples are missed."),
        ] {
            let timeline = Timeline { ceiling, ..sampled.clone() };
            assert_eq!(timeline.peaks().bound, bound);
            assert!(timeline.notes()[1].ends_with(note), "{:?}", timeline.notes());
        }
    }

    #[test]
    fn after_a_loss_nothing_is_said_and_peaks_are_bounds() {
        let mut timeline = host(vec![allocation(10, 0xa, 100), free(20, 0xa, 100)]);
        timeline.lost = Some(Lost { events: 9, from_ns: Some(25) });
        timeline.totals = Some(Totals { change_bytes: -3, peak_bytes: 400 });
        assert_eq!(timeline.peaks(), Peaks { allocated: Some(400), bound: Bound::AtLeast, ..Peaks::default() });
        let (before, after) = (timeline.snapshot(24), timeline.snapshot(25));
        assert_eq!((before.allocated_bytes, before.live_blocks), (Some(0), Some(0)));
        assert_eq!((after.allocated_bytes, after.live_blocks, after.lost_events), (None, None, 9));
        assert_eq!(timeline.live_at(25), []);
        assert!(timeline.notes()[1].contains("The last 9 events"), "{:?}", timeline.notes());

        timeline.totals = Some(Totals { change_bytes: 0, peak_bytes: 60 });
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
