//! Timelines of device memory from CUPTI records.

use super::event::{LostEvents, MemoryEvent};
use super::source::MemorySource;
use super::timeline::Timeline;
use crate::cuda::Activities;

impl Timeline {
    /// Creates a timeline of the device memory that a process allocated and freed, from a recording between two moments
    /// on CUPTI's time axis. Host memory that the device can read is excluded.
    pub fn from_activities(activities: &Activities, start_ns: u64, end_ns: u64) -> Self {
        let since_start = |at_ns: u64| at_ns.saturating_sub(start_ns);
        let on_device = |kind| !matches!(kind, "pageable" | "pinned");
        let mut events: Vec<MemoryEvent> = (activities.memory.iter())
            .filter(|event| on_device(event.kind))
            .map(|event| MemoryEvent {
                at_ns: since_start(event.at_ns),
                address: event.address,
                bytes: event.bytes,
                freed: event.freed,
                what: Some(event.kind.into()),
            })
            .collect();
        // Buffers of different threads follow each other.
        events.sort_by_key(|event| event.at_ns);
        // CUPTI does not report the kinds of dropped records.
        let lost = (activities.dropped > 0).then_some(LostEvents { events: activities.dropped, from_ns: None });
        Self { events, lost, ..Self::new(MemorySource::Cupti, since_start(end_ns)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda;
    use crate::memory::MemoryPeaks;

    #[test]
    fn device_allocations_count_as_reserved() {
        let event = |at_ns, address, bytes, freed, kind| cuda::MemoryActivity { at_ns, address, bytes, freed, kind };
        let activities = Activities {
            memory: vec![
                event(1_300, 0x7000, 64, true, "device"),
                event(1_100, 0x7000, 64, false, "device"),
                event(1_200, 0x9000, 32, false, "managed"),
                event(1_250, 0x1000, 500, false, "pinned"),
            ],
            dropped: 3,
            ..Activities::default()
        };
        let timeline = Timeline::from_activities(&activities, 1_000, 1_400);
        let peaks = timeline.peaks();
        assert_eq!(MemoryPeaks { reserved: Some(96), bound: peaks.bound, ..MemoryPeaks::default() }, peaks);
        assert_eq!((timeline.end_ns, timeline.peak_at_ns()), (400, Some(200)));
        let live = timeline.live_at(400);
        assert_eq!((live.len(), live[0].what.as_deref()), (1, Some("managed")));
        assert_eq!(timeline.lost, Some(LostEvents { events: 3, from_ns: None }));
    }
}
