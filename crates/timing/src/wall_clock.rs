//! Wall clock.

use crate::stopwatch::time_calls;
use crate::{Failure, LaunchSpan, Overhead, Reading, Stopwatch, Work};
use std::time::Instant;

/// Monotonic host clock around a window that ends with a synchronization.
pub struct WallClock {
    overhead: Overhead,
}

impl WallClock {
    /// Clock for work that is complete when `launch` returns: windows have no fixed cost.
    pub fn synchronous() -> Self {
        Self { overhead: Overhead::Excluded }
    }

    /// Clock for asynchronous work: the cost of synchronization is removed by the slope over window lengths.
    pub fn slope() -> Self {
        Self { overhead: Overhead::Included }
    }
}

impl Stopwatch for WallClock {
    fn name(&self) -> &'static str {
        match self.overhead {
            Overhead::Excluded => "wall",
            Overhead::Included => "slope",
        }
    }

    /// Synchronous work runs on the calling thread, so host and device spans are equal.
    fn launch_spans(&mut self, work: &mut dyn Work, launches: u32) -> Result<Vec<LaunchSpan>, Failure> {
        let device = |host| (self.overhead == Overhead::Excluded).then_some(host);
        Ok(time_calls(work, launches)?.into_iter().map(|host| LaunchSpan { host, device: device(host) }).collect())
    }

    fn overhead(&self) -> Overhead {
        self.overhead
    }

    /// The host's clock runs through the gaps of an asynchronous device.
    fn includes_gaps(&self) -> bool {
        self.overhead == Overhead::Included
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        if self.overhead == Overhead::Included {
            work.synchronize()?;
        }
        let start = Instant::now();
        for _ in 0..launches {
            work.launch()?;
        }
        work.synchronize()?;
        Ok(Reading::Ready(start.elapsed().as_nanos() as u64))
    }
}
