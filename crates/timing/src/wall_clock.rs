//! The wall clock.

use crate::stopwatch::called;
use crate::{Failure, LaunchSpan, Overhead, Reading, Stopwatch, Work};
use std::time::Instant;

/// The host's monotonic clock around a window that ends with a wait for the work.
pub struct WallClock {
    overhead: Overhead,
}

impl WallClock {
    /// For work that has run when `launch` returns: a window costs nothing but its launches.
    pub fn synchronous() -> Self {
        Self { overhead: Overhead::Outside }
    }

    /// For work on a device that must be waited for: the cost of waiting is removed by the slope over window lengths.
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

    /// Work that has run when `launch` returns ran where it was called.
    fn spans(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<LaunchSpan>, Failure> {
        let seen = |host| (self.overhead == Overhead::Outside).then_some(host);
        Ok(called(work, launches)?.into_iter().map(|host| LaunchSpan { host, device: seen(host) }).collect())
    }

    fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// Where the device works beside the host, the host's clock goes on in its gaps.
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
