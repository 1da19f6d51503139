//! Memory over time, as one source tells it.

use super::event::{Lost, Mark, MemoryEvent, PoolSample, Totals};
use super::live::{Block, Live};
use super::source::{Quantity, Source};
use serde::{Deserialize, Serialize};

/// The most that there ever was. What the source does not tell is absent.
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
    /// How far they can be trusted.
    pub bound: Bound,
}

/// What a peak is to the true one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The same: every event is there, or samples come within 1 % of the most that there can be.
    #[default]
    Exact,
    /// At most it: there were samples that may have missed it, or the last events are missing.
    AtLeast,
    /// Unknown: events are missing, and nobody knows which.
    Unknown,
}

/// Memory from a start to an end.
///
/// Blocks count from their allocation in the timeline on: what lived before its start is in no figure, also not as
/// something negative when it is freed. So a figure is what has been added since the start, by anything in the process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Who says so.
    pub source: Source,
    /// When it ended, in nanoseconds since its start.
    pub end_ns: u64,
    /// Blocks allocated and freed, in order of time.
    pub events: Vec<MemoryEvent>,
    /// What a pool said of all it holds, also from before the start, in order of time. It speaks where the events do
    /// not.
    pub pools: Vec<PoolSample>,
    /// What the pool can have handed out at most, where that was found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<u64>,
    /// Named moments.
    pub marks: Vec<Mark>,
    /// What is missing.
    pub lost: Option<Lost>,
    /// What was counted besides the events.
    pub totals: Option<Totals>,
}

impl Timeline {
    /// With nothing in it.
    pub fn new(source: Source, end_ns: u64) -> Self {
        Self { source, end_ns, events: vec![], pools: vec![], ceiling: None, marks: vec![], lost: None, totals: None }
    }

    /// The steps of one quantity: from each moment on it has the value beside it. Empty where the source tells nothing.
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

    /// One step per moment, two where it was higher in between: a block that is moved is freed and allocated at once.
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

    /// The highest values.
    pub fn peaks(&self) -> Peaks {
        let highest = |quantity| self.steps(quantity).into_iter().map(|(_, bytes)| bytes).max();
        let mut peaks = Peaks {
            allocated: highest(Quantity::Allocated),
            active: highest(Quantity::Active),
            reserved: highest(Quantity::Reserved),
            bound: self.bound(),
        };
        if let (Some(_), Some(totals)) = (self.lost, self.totals) {
            // What was above the start is at most what was allocated since.
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

    /// When the blocks together were largest, for the first time; without blocks, what a pool had allocated.
    pub fn peak_at_ns(&self) -> Option<u64> {
        let steps = self.steps(self.source.told_by_events().unwrap_or(Quantity::Allocated));
        let highest = steps.iter().map(|&(_, bytes)| bytes).max()?;
        steps.into_iter().find(|&(_, bytes)| bytes == highest).map(|(at_ns, _)| at_ns)
    }

    /// The blocks that live at a moment, the largest first. Empty where the source tells no blocks or has lost them.
    pub fn live_at(&self, at_ns: u64) -> Vec<Block> {
        if !self.tells_blocks_at(at_ns) {
            return Vec::new();
        }
        Live::after(self.events.iter().take_while(|event| event.at_ns <= at_ns)).blocks()
    }

    /// Bytes of blocks that were freed and had been allocated before the start: they are in no other figure.
    pub fn freed_from_before(&self) -> u64 {
        Live::after(&self.events).freed_from_before
    }

    /// What a reader must know to read the figures right.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![match self.source {
            Source::HostAllocator => "What this process asked of its allocator since the start.".into(),
            Source::Cupti => "What this process took of the device since the start: of a runtime with a pool, the \
                              pool's pages and not the tensors in them."
                .into(),
            Source::PoolStatistics => "What the pool said of itself.".into(),
        }];
        if !self.pools.is_empty() {
            let samples = self.pools.len();
            let seen = match self.ceiling {
                _ if self.reaches_its_ceiling() => "the highest is within 1 % of the most there can have been.".into(),
                Some(ceiling) if self.peaks().active < Some(ceiling) => {
                    format!("a peak in between is not seen, up to {ceiling} bytes handed out.")
                }
                _ => "a peak in between is not seen.".into(),
            };
            notes.push(format!("There are {samples} samples of the pool: {seen}"));
        }
        let before = self.freed_from_before();
        if before > 0 {
            notes.push(format!("{before} bytes from before the start were freed; they are not in the figures."));
        }
        notes.extend(self.lost.map(|Lost { events, from_ns }| match from_ns {
            Some(_) => format!("The last {events} events found no room: the line ends early, peaks are lower bounds."),
            None => format!("Up to {events} events are missing, nobody knows which: figures may be wrong by them."),
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
        let after = steps.partition_point(|&(step_ns, _)| step_ns <= at_ns);
        after.checked_sub(1).map(|last| steps[last].1)
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
            allocation(19, 0xa, 7), // what another thread got at once
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
        assert!(timeline.notes()[1].starts_with("5070 bytes from before the start were freed"));
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
            (None, Bound::AtLeast, "a peak in between is not seen."),
            (Some(809), Bound::AtLeast, "a peak in between is not seen, up to 809 bytes handed out."),
            (Some(808), Bound::Exact, "the highest is within 1 % of the most there can have been."),
            (Some(800), Bound::Exact, "the highest is within 1 % of the most there can have been."),
            // What was exceeded was no ceiling.
            (Some(799), Bound::AtLeast, "a peak in between is not seen."),
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
        assert!(timeline.notes()[1].contains("The last 9 events found no room"), "{:?}", timeline.notes());

        timeline.totals = Some(Totals { change_bytes: 0, peak_bytes: 60 });
        assert_eq!(timeline.peaks().allocated, Some(100));
    }

    proptest! {
        #[test]
        fn the_steps_are_the_sums_of_the_blocks(script in prop::collection::vec((0_u64..8, 1_u64..1_000), 0..60)) {
            // Each line takes an address if it is free, and frees it if it is taken.
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
