//! Cost of launches for their caller, on the host's clock.

use crate::{Failure, Overhead, Reading, Stopwatch, Work};
use std::time::{Duration, Instant};

/// Host clock around each launch and the wait for its end.
pub struct EndToEndClock;

impl Stopwatch for EndToEndClock {
    fn name(&self) -> &'static str {
        "wall-e2e"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        work.synchronize()?;
        let start = Instant::now();
        for _ in 0..launches {
            work.launch()?;
            work.synchronize()?;
        }
        Ok(Reading::Ready(start.elapsed().as_nanos() as u64))
    }
}

/// Host clock around each launch call; the synchronization in between is not timed.
pub struct EnqueueClock;

/// Number of launches that never fills a queue.
const MAX_IN_FLIGHT: u32 = 16;

impl Stopwatch for EnqueueClock {
    fn name(&self) -> &'static str {
        "wall-enqueue"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Excluded
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        let mut busy = Duration::ZERO;
        // An empty window is an empty burst and costs the two clock reads of a burst.
        for burst in 0..launches.div_ceil(MAX_IN_FLIGHT).max(1) {
            work.synchronize()?;
            let start = Instant::now();
            for _ in burst * MAX_IN_FLIGHT..launches.min((burst + 1) * MAX_IN_FLIGHT) {
                work.launch()?;
            }
            busy += start.elapsed();
        }
        work.synchronize()?;
        Ok(Reading::Ready(busy.as_nanos() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::sleep;

    /// Enqueuing takes a millisecond; each launch then runs for two more.
    #[derive(Default)]
    struct Slow {
        pending: u32,
        most: u32,
    }

    impl Work for Slow {
        fn launch(&mut self) -> Result<(), Failure> {
            self.pending += 1;
            self.most = self.most.max(self.pending);
            sleep(Duration::from_millis(1));
            Ok(())
        }

        fn synchronize(&mut self) -> Result<(), Failure> {
            sleep(Duration::from_millis(2) * self.pending);
            self.pending = 0;
            Ok(())
        }
    }

    #[test]
    fn enqueue_time_excludes_the_wait() {
        let mut work = Slow::default();
        let waited = EndToEndClock.window(&mut work, 10).unwrap().resolve().unwrap();
        assert!(waited >= 30_000_000, "{waited}");
        let enqueued = EnqueueClock.window(&mut work, 40).unwrap().resolve().unwrap();
        assert!((40_000_000..80_000_000).contains(&enqueued), "{enqueued}");
        assert_eq!((work.pending, work.most), (0, MAX_IN_FLIGHT));
    }

    #[test]
    fn empty_windows_read_above_zero() {
        let clocks: [&mut dyn Stopwatch; 2] = [&mut EndToEndClock, &mut EnqueueClock];
        for clock in clocks {
            let mut read = || clock.window(&mut Slow::default(), 0).unwrap().resolve().unwrap();
            assert!((0..1000).any(|_| read() > 0), "a clock that never moves");
        }
    }
}
