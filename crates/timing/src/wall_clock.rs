//! Wall clock.

use crate::stopwatch::called;
use crate::{Failure, LaunchSpan, Overhead, Reading, Stopwatch, Work};
use std::time::Instant;

/// Monotonic host clock around a window that ends with a synchronization.
pub struct WallClock {
    overhead: Overhead,
}

impl WallClock {
    /// Clock for work that is complete when `launch` returns: windows have no fixed cost.
    pub fn synchronous() -> Self {
        Self { overhead: Overhead::Outside }
    }

    /// Clock for asynchronous work: the cost of synchronization is removed by the slope over window lengths.
    pub fn slope() -> Self {
        Self { overhead: Overhead::Inside }
    }
}

impl Stopwatch for WallClock {
    fn name(&self) -> &'static str {
        match self.overhead {
            Overhead::Outside => "wall",
            Overhead::Inside => "slope",
        }
    }

    /// Synchronous work runs on the calling thread, so host and device spans are equal.
    fn spans(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<LaunchSpan>, Failure> {
        let device = |host| (self.overhead == Overhead::Outside).then_some(host);
        Ok(called(work, launches)?.into_iter().map(|host| LaunchSpan { host, device: device(host) }).collect())
    }

    fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// The host's clock runs through the gaps of an asynchronous device.
    fn holds_gaps(&self) -> bool {
        self.overhead == Overhead::Inside
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        if self.overhead == Overhead::Inside {
            work.settle()?;
        }
        let start = Instant::now();
        for _ in 0..launches {
            work.launch()?;
        }
        work.settle()?;
        Ok(Reading::Now(start.elapsed().as_nanos() as u64))
    }
}
