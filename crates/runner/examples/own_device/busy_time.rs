//! The stopwatch of a device that counts the time in which it is busy.

use calorimeter_timing::{Failure, Overhead, Reading, Stopwatch, Work};
use std::sync::atomic::{AtomicU64, Ordering};

// ANCHOR: stopwatch
/// The nanoseconds in which a device was busy, as it counts them itself.
pub struct BusyTime(pub &'static AtomicU64);

impl Stopwatch for BusyTime {
    fn name(&self) -> &'static str {
        "busy-time"
    }

    fn overhead(&self) -> Overhead {
        Overhead::Outside
    }

    fn window(&mut self, work: &mut dyn Work, launches: u32) -> Result<Reading, Failure> {
        work.settle()?;
        let before = self.0.load(Ordering::Acquire);
        for _ in 0..launches {
            work.launch()?;
        }
        work.settle()?;
        Ok(Reading::Now(self.0.load(Ordering::Acquire) - before))
    }
}
// ANCHOR_END: stopwatch
